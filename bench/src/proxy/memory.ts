/**
 * Measures what an open session costs in memory: sessions are opened and played to some length, garbage is
 * collected, and the difference to before is divided by their number.
 */
import { callModel } from "./client.js";
import { BenchConversation, growingTo } from "./conversation.js";
import type { ReplyPlan } from "./replies.js";
import { Server, type Usage } from "./server.js";
import type { Stand } from "./stand.js";
import { rounded } from "./statistics.js";

const REPLY: ReplyPlan = { kind: "call", tokens: 0, firstTokenMs: 0, tokenMs: 0 };
const BYTES_PER_KIB = 1024;
const PLAYED_AT_ONCE = 8;

export interface MemoryCase {
  readonly sessions: number;
  readonly turns: number;
  readonly contextTokens: number;
}

export async function measureMemory(stand: Stand, cases: readonly MemoryCase[]) {
  const rows = [];
  for (const [ordinal, one] of cases.entries()) {
    const server = await Server.start(stand, "proxy", REPLY);
    await play(stand, server, { ...one, sessions: PLAYED_AT_ONCE }, `memory-warm-${ordinal}`);
    const before = await server.usage({ collect: true });
    await play(stand, server, one, `memory-${ordinal}`);
    const after = await server.usage({ collect: true });
    rows.push({ ...one, ...perSession(before, after, one.sessions) });
    await server.stop();
  }
  return { rows };
}

function perSession(before: Usage, after: Usage, sessions: number) {
  const kib = (key: keyof Usage) => rounded((after[key] - before[key]) / sessions / BYTES_PER_KIB, 1);
  const heapKiB = kib("heapBytes");
  const arraysKiB = kib("arrayBytes");
  return { heapKiB, arraysKiB, liveKiB: rounded(heapKiB + arraysKiB, 1), rssKiB: kib("rssBytes") };
}

async function play(stand: Stand, server: Server, one: MemoryCase, name: string): Promise<void> {
  const plan = growingTo(one.contextTokens, Math.max(2, one.turns), "call");
  let next = 0;
  const worker = async () => {
    for (let at = next++; at < one.sessions; at = next++) {
      const target = await server.open(`${name}-${at}`);
      const conversation = new BenchConversation(stand.prose, plan);
      for (let turn = 0; turn < one.turns; turn++)
        conversation.takeReply(await callModel(target, conversation.body()));
    }
  };
  await Promise.all(Array.from({ length: PLAYED_AT_ONCE }, worker));
}
