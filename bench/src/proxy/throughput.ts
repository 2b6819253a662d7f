/**
 * Measures turns per second when sessions never pause: whole conversations of 80 turns, many at once. One server
 * after the other on the same cores, which the client shares; CPU and memory are those of the server's whole
 * process tree. Also how much of the proxy's price is the journal: with it, and with turns that nobody stores.
 */
import { callModel } from "./client.js";
import { BenchConversation, growingTo } from "./conversation.js";
import { treeUsage } from "./process-tree.js";
import type { Stand } from "./stand.js";
import { median, rounded } from "./statistics.js";

const TURNS = 80;

/** A server of any make. */
export interface Contestant {
  readonly name: string;
  readonly pid: number;
  /** Where the harness of a trial calls. */
  open(trial: string): Promise<{ address: string; token: string }>;
  seal(trial: string): Promise<void>;
}

export interface ThroughputOptions {
  readonly contextTokens: number;
  readonly sessions: number;
  readonly rounds: number;
  /** Fewer than 80 where a contestant is slow; the same for all. */
  readonly turns?: number;
}

export async function measureThroughput(
  stand: Stand,
  contestants: readonly Contestant[],
  options: ThroughputOptions,
) {
  const rounds = new Map(contestants.map((one) => [one.name, [] as Round[]]));
  for (const one of contestants) await playRound(stand, one, { ...options, sessions: 2 }, "warm");
  for (let round = 0; round < options.rounds; round++)
    for (const one of contestants)
      rounds.get(one.name)!.push(await playRound(stand, one, options, String(round)));
  const rows = [...rounds].map(([name, of]) => ({ name, ...summary(of) }));
  return { ...options, turns: options.turns ?? TURNS, rows };
}

interface Round {
  readonly turnsPerSecond: number;
  readonly cpuMsPerTurn: number;
  readonly natsCpuMsPerTurn: number;
  readonly memoryMiB: number;
}

function summary(rounds: readonly Round[]) {
  const of = (key: keyof Round) => rounded(median(rounds.map((round) => round[key])), 3);
  return {
    turnsPerSecond: of("turnsPerSecond"),
    cpuMsPerTurn: of("cpuMsPerTurn"),
    natsCpuMsPerTurn: of("natsCpuMsPerTurn"),
    memoryMiB: of("memoryMiB"),
    turnsPerSecondByRound: rounds.map((round) => rounded(round.turnsPerSecond, 1)),
  };
}

async function playRound(
  stand: Stand,
  contestant: Contestant,
  { contextTokens, sessions, turns = TURNS }: ThroughputOptions,
  round: string,
): Promise<Round> {
  const plan = growingTo(contextTokens, turns, "call");
  const name = contestant.name.replace(/[^A-Za-z0-9_-]/g, "_");
  const trials = Array.from({ length: sessions }, (_, at) => `turns-${name}-${contextTokens}-${round}-${at}`);
  const targets = await Promise.all(trials.map((trial) => contestant.open(trial)));
  const before = { own: treeUsage(contestant.pid).cpuMs, nats: treeUsage(stand.nats.pid).cpuMs };
  const start = performance.now();
  await Promise.all(
    targets.map(async (target) => {
      const conversation = new BenchConversation(stand.prose, plan);
      for (let turn = 0; turn < turns; turn++)
        conversation.takeReply(await callModel(target, conversation.body()));
    }),
  );
  const wallMs = performance.now() - start;
  const after = treeUsage(contestant.pid);
  const natsCpuMs = treeUsage(stand.nats.pid).cpuMs - before.nats;
  for (const trial of trials) await contestant.seal(trial);
  const played = turns * sessions;
  return {
    turnsPerSecond: (played * 1000) / wallMs,
    cpuMsPerTurn: (after.cpuMs - before.own) / played,
    natsCpuMsPerTurn: natsCpuMs / played,
    memoryMiB: after.pssBytes / 2 ** 20,
  };
}
