/**
 * Measures whether the proxy's memory stays flat: sessions are opened, played to their end and sealed, many
 * thousand turns long, and at intervals garbage is collected and what is left is noted.
 */
import { callModel } from "./client.js";
import { BenchConversation, growingTo } from "./conversation.js";
import type { ReplyPlan } from "./replies.js";
import { Server } from "./server.js";
import type { Stand } from "./stand.js";
import { rounded } from "./statistics.js";

const REPLY: ReplyPlan = { kind: "text", tokens: 8, firstTokenMs: 0, tokenMs: 0 };
const TURNS_PER_SESSION = 80;
const CONTEXT_TOKENS = 3_000;
const SESSIONS_AT_ONCE = 16;
const SAMPLES = 20;

export async function measureSoak(stand: Stand, totalTurns: number) {
  const server = await Server.start(stand, "proxy", REPLY);
  const plan = growingTo(CONTEXT_TOKENS, TURNS_PER_SESSION, "text");
  const samples: { turns: number; heapMiB: number; arraysMiB: number; rssMiB: number }[] = [];
  let turns = 0;
  let sessions = 0;
  const start = performance.now();
  const sample = async () => {
    const { heapBytes, arrayBytes, rssBytes } = await server.usage({ collect: true });
    const mib = (bytes: number) => rounded(bytes / 2 ** 20, 1);
    samples.push({ turns, heapMiB: mib(heapBytes), arraysMiB: mib(arrayBytes), rssMiB: mib(rssBytes) });
    console.error(JSON.stringify(samples.at(-1)));
  };
  const playOne = async () => {
    const trial = `soak-${sessions++}`;
    const target = await server.open(trial);
    const conversation = new BenchConversation(stand.prose, plan);
    for (let turn = 0; turn < TURNS_PER_SESSION && turns < totalTurns; turn++, turns++)
      conversation.takeReply(await callModel(target, conversation.body()));
    await server.seal(trial);
  };
  for (let part = 1; part <= SAMPLES; part++) {
    const until = (totalTurns * part) / SAMPLES;
    const worker = async () => {
      while (turns < until) await playOne();
    };
    await Promise.all(Array.from({ length: SESSIONS_AT_ONCE }, worker));
    await sample();
  }
  const wallMs = performance.now() - start;
  await server.stop();
  return { turns, sessions, turnsPerSecond: rounded((turns * 1000) / wallMs, 1), samples };
}
