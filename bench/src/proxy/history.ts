/**
 * Measures what a turn costs as its history grows to 2k, 20k and 100k tokens over 80 turns: CPU of the server's
 * process per turn, over all turns and at the last ones, and turns per second. Compared with rendering and
 * tokenising the whole history at each turn, and with the bare server, whose CPU is what HTTP alone costs.
 */
import { callModel } from "./client.js";
import { BenchConversation, growingTo } from "./conversation.js";
import { treeUsage } from "./process-tree.js";
import type { ReplyPlan } from "./replies.js";
import { Server, type ServerKind } from "./server.js";
import type { Stand } from "./stand.js";
import { mean, median, rounded } from "./statistics.js";

/** A short context has no room for 80 calls: there the agent only talks. */
const SHORT_CONTEXT_TOKENS = 4_000;
const CALL: ReplyPlan = { kind: "call", tokens: 0, firstTokenMs: 0, tokenMs: 0 };
const TEXT: ReplyPlan = { kind: "text", tokens: 1, firstTokenMs: 0, tokenMs: 0 };
const TURNS = 80;
/**
 * Turns whose mean stands for "at turn 80". A collection of garbage falls into one turn of several and belongs to
 * all of them: in a mean of few it decides the result, in a median it would not count.
 */
const LAST_TURNS = 10;
/** Played before anything is counted: code is compiled while it is new, by the process it is counted for. */
const WARM_SESSIONS = 4;

export interface HistoryOptions {
  readonly contexts: readonly number[];
  readonly kinds: readonly ServerKind[];
  /** Sessions played at once; each has TURNS turns. */
  readonly sessions: number;
  readonly rounds: number;
}

interface Round {
  readonly cpuMsPerTurn: number;
  readonly cpuMsAtLast: number;
  readonly turnsPerSecond: number;
  readonly natsCpuMsPerTurn: number;
  readonly promptTokensAtLast: number;
}

export async function measureHistory(stand: Stand, options: HistoryOptions) {
  const rows = [];
  for (const contextTokens of options.contexts) {
    const rounds = new Map<ServerKind, Round[]>(options.kinds.map((kind) => [kind, []]));
    const reply = contextTokens < SHORT_CONTEXT_TOKENS ? TEXT : CALL;
    const servers = await Promise.all(options.kinds.map((kind) => Server.start(stand, kind, reply)));
    for (const server of servers)
      await playRound(stand, server, { contextTokens, round: -1, sessions: WARM_SESSIONS });
    for (let round = 0; round < options.rounds; round++)
      for (const server of servers) {
        const { sessions } = options;
        rounds.get(server.kind)!.push(await playRound(stand, server, { contextTokens, round, sessions }));
      }
    for (const server of servers) await server.stop();
    for (const [kind, of] of rounds) rows.push({ contextTokens, kind, ...summary(of) });
  }
  return { turns: TURNS, sessions: options.sessions, lastTurns: LAST_TURNS, rows };
}

function summary(rounds: readonly Round[]) {
  const of = (key: keyof Round) => rounded(median(rounds.map((round) => round[key])), 3);
  return {
    cpuMsPerTurn: of("cpuMsPerTurn"),
    cpuMsAtLast: of("cpuMsAtLast"),
    turnsPerSecond: of("turnsPerSecond"),
    natsCpuMsPerTurn: of("natsCpuMsPerTurn"),
    promptTokensAtLast: of("promptTokensAtLast"),
    cpuMsAtLastByRound: rounds.map((round) => rounded(round.cpuMsAtLast, 3)),
  };
}

/** All sessions take each turn together, so that CPU can be told by turn. */
async function playRound(
  stand: Stand,
  server: Server,
  { contextTokens, round, sessions }: { contextTokens: number; round: number; sessions: number },
): Promise<Round> {
  const trials = Array.from(
    { length: sessions },
    (_, at) => `history-${server.kind}-${contextTokens}-${round}-${at}`,
  );
  const plan = growingTo(contextTokens, TURNS, contextTokens < SHORT_CONTEXT_TOKENS ? "text" : "call");
  const agents = await Promise.all(
    trials.map(async (trial) => ({
      target: await server.open(trial),
      conversation: new BenchConversation(stand.prose, plan),
    })),
  );
  const cpuByTurn: number[] = [];
  const natsBefore = treeUsage(stand.nats.pid).cpuMs;
  let wallMs = 0;
  let promptTokensAtLast = 0;
  for (let turn = 0; turn < TURNS; turn++) {
    const bodies = agents.map(({ conversation }) => conversation.body());
    const before = await server.usage();
    const start = performance.now();
    const served = await Promise.all(agents.map(({ target }, at) => callModel(target, bodies[at]!)));
    wallMs += performance.now() - start;
    const after = await server.usage();
    promptTokensAtLast = served[0]!.promptTokens;
    cpuByTurn.push((after.cpuMs - before.cpuMs) / sessions);
    agents.forEach(({ conversation }, at) => {
      conversation.takeReply(served[at]!);
    });
  }
  const natsCpuMs = treeUsage(stand.nats.pid).cpuMs - natsBefore;
  for (const trial of trials) await server.seal(trial);
  return {
    cpuMsPerTurn: mean(cpuByTurn),
    cpuMsAtLast: mean(cpuByTurn.slice(-LAST_TURNS)),
    turnsPerSecond: (TURNS * sessions * 1000) / wallMs,
    natsCpuMsPerTurn: natsCpuMs / (TURNS * sessions),
    promptTokensAtLast,
  };
}
