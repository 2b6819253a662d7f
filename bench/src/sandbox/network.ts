/**
 * Measures networks of sandboxes without sandboxes: a namespace made with each policy, proved, changed to the model
 * alone and closed; then what the relay of an allow-list carries from one process to another.
 */
import { fork } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { type Network, SandboxNetwork, withinNetworkNamespace } from "@mortise/sandbox-manager";
import { rounded } from "../proxy/statistics.js";
import { summary } from "./lifecycle.js";
import { timed } from "./stand.js";

/** An address of loopback stands for a host elsewhere. */
const HOST = "127.86.2.1";
const MODEL = { host: "127.0.0.1", port: 9 };
const TRANSFER_BYTES = 256 * 1024 * 1024;

const POLICIES: Readonly<Record<string, Network>> = {
  none: { kind: "none" },
  model: { kind: "model", ...MODEL },
  allowList: { kind: "allow-list", ...MODEL, allowedHosts: [HOST] },
};

export async function measureNetworks(rounds: number): Promise<object> {
  const policies: Record<string, object> = {};
  for (const [name, network] of Object.entries(POLICIES))
    policies[name] = await measurePolicy(network, rounds);
  return { rounds, policies, relay: await measureRelay() };
}

async function measurePolicy(network: Network, rounds: number): Promise<object> {
  const times = {
    createMs: [] as number[],
    proofMs: [] as number[],
    changeMs: [] as number[],
    closeMs: [] as number[],
  };
  for (let round = 0; round < rounds; round++) {
    const made = await timed(() => SandboxNetwork.create(network, { privateHosts: [HOST] }));
    times.createMs.push(made.ms);
    const proof = await timed(() => made.value.prove());
    if (!proof.value.isClosed) throw new Error(`not closed: ${JSON.stringify(proof.value.probes)}`);
    times.proofMs.push(proof.ms);
    times.changeMs.push((await timed(() => made.value.set({ kind: "model", ...MODEL }))).ms);
    times.closeMs.push((await timed(() => made.value.close())).ms);
  }
  return Object.fromEntries(Object.entries(times).map(([step, values]) => [step, summary(values)]));
}

/** One connection, from a process inside to this one, through the relay that runs here too. */
async function measureRelay(): Promise<object> {
  let received = 0;
  const done = Promise.withResolvers<void>();
  const server = net.createServer((socket) =>
    socket.on("data", (chunk) => (received += chunk.byteLength)).on("end", () => done.resolve()),
  );
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  const { port } = server.address() as net.AddressInfo;
  const network = await SandboxNetwork.create(POLICIES.allowList!, { privateHosts: [HOST] });
  const fd = openSync(network.namespacePath, "r");
  const sender = path.join(import.meta.dirname, "sender.js");
  const { ms } = await timed(async () => {
    withinNetworkNamespace(fd, () => fork(sender, [HOST, String(port), String(TRANSFER_BYTES)]));
    await done.promise;
  });
  closeSync(fd);
  await network.close();
  server.close();
  if (received !== TRANSFER_BYTES) throw new Error(`${received} bytes arrived of ${TRANSFER_BYTES}`);
  return { bytes: received, mibPerSecond: rounded(received / 2 ** 20 / (ms / 1000), 0) };
}
