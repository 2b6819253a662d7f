/**
 * Measures the proxy. Usage: node bench/dist/proxy/main.js [what…] [--short] [--litellm=COMMAND] [--turns=N]
 * [--out=FILE] with what of latency, history, memory, journal, peers, soak; all of them when none is named.
 * `peers` needs the `litellm` command of an installation with its proxy; `turns` are those of the soak. Prints
 * the machine and every result as JSON.
 */
import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { closeConnections } from "./client.js";
import { measureHistory } from "./history.js";
import { measureLatency } from "./latency.js";
import { LiteLlm } from "./litellm.js";
import { load, machine } from "./machine.js";
import { measureMemory } from "./memory.js";
import type { ReplyPlan } from "./replies.js";
import { Server, type ServerKind } from "./server.js";
import { measureSoak } from "./soak.js";
import { Stand } from "./stand.js";
import { type Contestant, measureThroughput } from "./throughput.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    short: { type: "boolean", default: false },
    litellm: { type: "string" },
    turns: { type: "string", default: "100000" },
    out: { type: "string" },
  },
});
const isShort = values.short;
const CALL: ReplyPlan = { kind: "call", tokens: 0, firstTokenMs: 0, tokenMs: 0 };

const MEASUREMENTS: Readonly<Record<string, (stand: Stand) => Promise<object>>> = {
  latency: (stand) =>
    measureLatency(stand, { sessions: isShort ? [1, 64] : [1, 64, 256], rounds: isShort ? 1 : 3 }),
  history: (stand) =>
    measureHistory(stand, {
      contexts: [2_000, 20_000, 100_000],
      kinds: ["proxy", "unjournalled", "naive", "naive-words", "floor"],
      sessions: isShort ? 1 : 2,
      rounds: isShort ? 1 : 5,
    }),
  memory: (stand) =>
    measureMemory(stand, [
      { sessions: isShort ? 50 : 400, turns: 1, contextTokens: 2_000 },
      { sessions: isShort ? 10 : 100, turns: 20, contextTokens: 20_000 },
      { sessions: isShort ? 4 : 20, turns: 80, contextTokens: 100_000 },
    ]),
  journal: (stand) =>
    withServers(stand, ["proxy", "unjournalled"], (contestants) =>
      measureThroughput(stand, contestants, { contextTokens: 20_000, sessions: 16, rounds: isShort ? 1 : 3 }),
    ),
  peers: measurePeers,
  soak: (stand) => measureSoak(stand, Number(values.turns)),
};

async function withServers<T>(
  stand: Stand,
  kinds: readonly ServerKind[],
  measure: (contestants: Contestant[]) => Promise<T>,
): Promise<T> {
  const servers = await Promise.all(kinds.map((kind) => Server.start(stand, kind, CALL)));
  const contestants = servers.map((server) => ({
    name: server.kind,
    pid: server.pid,
    open: (trial: string) => server.open(trial),
    seal: (trial: string) => server.seal(trial),
  }));
  const result = await measure(contestants);
  for (const server of servers) await server.stop();
  return result;
}

async function measurePeers(stand: Stand): Promise<object> {
  const { litellm: program } = values;
  if (program === undefined) return { notRun: "no --litellm given" };
  const upstream = await Server.start(stand, "floor", CALL);
  const { directory } = stand;
  const peers: LiteLlm[] = [];
  const notStarted: string[] = [];
  for (const workers of [1, 2])
    try {
      peers.push(await LiteLlm.start({ program, upstream: upstream.address, directory, workers }));
    } catch (error) {
      notStarted.push(`${workers} worker(s): ${(error as Error).message}`);
    }
  const results = await withServers(stand, ["proxy", "naive"], async (ours) => {
    const rows = [];
    for (const contextTokens of [20_000, 100_000]) {
      const options = { contextTokens, sessions: 4, rounds: isShort ? 1 : 3 };
      rows.push(await measureThroughput(stand, [...ours, ...peers], options));
    }
    return rows;
  });
  for (const peer of peers) await peer.stop();
  await upstream.stop();
  return { upstreamIsOutsideTheirCpu: true, notStarted, results };
}

const chosen = positionals.length > 0 ? positionals : Object.keys(MEASUREMENTS);
for (const name of chosen)
  if (!Object.hasOwn(MEASUREMENTS, name)) {
    console.error(`${name}: not one of ${Object.keys(MEASUREMENTS).join(", ")}`);
    process.exit(2);
  }
const results: Record<string, unknown> = { machine: machine() };
console.log(JSON.stringify(results.machine));
const stand = await Stand.start();
try {
  for (const name of chosen) {
    const loadBefore = load();
    const result = await MEASUREMENTS[name]!(stand);
    results[name] = { loadBefore, loadAfter: load(), ...result };
    console.log(JSON.stringify({ [name]: results[name] }, null, 2));
  }
} finally {
  closeConnections();
  await stand.stop();
}
if (values.out !== undefined) await writeFile(values.out, `${JSON.stringify(results, null, 2)}\n`);
