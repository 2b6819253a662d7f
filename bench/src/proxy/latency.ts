/**
 * Measures what the proxy adds to the time of the first token, of the last, and of the stream's end: sessions
 * work at once, each a turn and a pause after the other, against a bare server that streams the same reply from
 * the same engine. The two take turns, so that what else the machine does meets both.
 */

import { callModel, type Served } from "./client.js";
import { BenchConversation } from "./conversation.js";
import type { ReplyPlan } from "./replies.js";
import { Server, type ServerKind } from "./server.js";
import type { Stand } from "./stand.js";
import { median, quantile, rounded } from "./statistics.js";

const REPLY: ReplyPlan = { kind: "text", tokens: 40, firstTokenMs: 150, tokenMs: 25 };
/** Between a reply and the next call: an agent runs its tool. */
const PAUSE_MS = 1_000;
const CONTEXT_TOKENS = 8_000;
const RESULT_TOKENS = 200;
const TURNS = 6;
const WARM_SESSIONS = 8;

export interface LatencyOptions {
  readonly sessions: readonly number[];
  readonly rounds: number;
}

type Times = Record<"firstTokenMs" | "lastTokenMs" | "endMs", number[]>;

export async function measureLatency(stand: Stand, options: LatencyOptions) {
  const rows = [];
  const [proxy, floor] = [
    await Server.start(stand, "proxy", REPLY),
    await Server.start(stand, "floor", REPLY),
  ];
  const servers = { proxy, floor };
  for (const server of Object.values(servers))
    await playSessions(stand, server, { sessions: WARM_SESSIONS, round: -1 });
  for (const sessions of options.sessions) {
    const added = { first: [] as number[], last: [] as number[], end: [] as number[] };
    const p99 = { proxy: [] as number[], floor: [] as number[] };
    const cpu = { proxy: [] as number[], floor: [] as number[] };
    for (let round = 0; round < options.rounds; round++) {
      const without = await playSessions(stand, floor, { sessions, round });
      const within = await playSessions(stand, proxy, { sessions, round });
      const difference = (key: keyof Times) => quantile(within[key], 0.5) - quantile(without[key], 0.5);
      added.first.push(difference("firstTokenMs"));
      added.last.push(difference("lastTokenMs"));
      added.end.push(difference("endMs"));
      p99.proxy.push(quantile(within.firstTokenMs, 0.99));
      p99.floor.push(quantile(without.firstTokenMs, 0.99));
      cpu.proxy.push(within.cpuMsPerTurn);
      cpu.floor.push(without.cpuMsPerTurn);
    }
    rows.push({
      sessions,
      addedFirstTokenMsP50: rounded(median(added.first)),
      addedLastTokenMsP50: rounded(median(added.last)),
      addedEndMsP50: rounded(median(added.end)),
      addedFirstTokenMsByRound: added.first.map((value) => rounded(value)),
      firstTokenMsP99: { proxy: rounded(median(p99.proxy)), floor: rounded(median(p99.floor)) },
      cpuMsPerTurn: { proxy: rounded(median(cpu.proxy)), floor: rounded(median(cpu.floor)) },
    });
  }
  await proxy.stop();
  await floor.stop();
  return { reply: REPLY, contextTokens: CONTEXT_TOKENS, turnsPerSession: TURNS, pauseMs: PAUSE_MS, rows };
}

async function playSessions(
  stand: Stand,
  server: Server,
  { sessions, round }: { sessions: number; round: number },
): Promise<Times & { cpuMsPerTurn: number }> {
  const times: Times = { firstTokenMs: [], lastTokenMs: [], endMs: [] };
  const trials = Array.from({ length: sessions }, (_, at) => trialOf(server.kind, sessions, round, at));
  const agents = await Promise.all(trials.map((trial) => openAgent(stand, server, trial)));
  const before = await server.usage();
  await Promise.all(
    agents.map(async (agent, at) => {
      // Spread over a turn, as agents are: all at once would measure a queue of our making.
      await pause((((at * 7919) % sessions) / sessions) * 2 * PAUSE_MS);
      await playTurns(agent, times);
    }),
  );
  const after = await server.usage();
  for (const trial of trials) await server.seal(trial);
  return { ...times, cpuMsPerTurn: (after.cpuMs - before.cpuMs) / (sessions * TURNS) };
}

interface Agent {
  readonly target: { address: string; token: string };
  readonly conversation: BenchConversation;
}

/** A session behind its first turn, which brings the whole context; what is timed is the turns after it. */
async function openAgent(stand: Stand, server: Server, trial: string): Promise<Agent> {
  const plan = { openingTokens: CONTEXT_TOKENS, resultTokens: RESULT_TOKENS, hasTools: true };
  const agent = { target: await server.open(trial), conversation: new BenchConversation(stand.prose, plan) };
  agent.conversation.takeReply(await callModel(agent.target, agent.conversation.body()));
  return agent;
}

async function playTurns({ target, conversation }: Agent, times: Times): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) {
    const served: Served = await callModel(target, conversation.body());
    for (const key of ["firstTokenMs", "lastTokenMs", "endMs"] as const) times[key].push(served[key]);
    conversation.takeReply(served);
    await pause(PAUSE_MS);
  }
}

function trialOf(kind: ServerKind, sessions: number, round: number, at: number): string {
  return `latency-${kind}-${sessions}-${round}-${at}`;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
