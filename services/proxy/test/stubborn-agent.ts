/**
 * An agent that works through a conversation of tool calls against whatever replicas there are: it asks the same
 * again, elsewhere, until it has a whole reply, as harnesses do, and remembers what it was given.
 */
import { expect } from "vitest";
import { call, joinStream } from "./http-client.js";
import { RUN } from "./proxy-fixture.js";
import type { ProxyProcess } from "./proxy-process.js";

const EDIT = { type: "function", function: { name: "edit", parameters: { type: "object", properties: {} } } };
const RETRY_MS = 50;

export interface Worked {
  readonly trial: string;
  readonly token: string;
  /** Of every reply that arrived whole, in order. */
  readonly callIds: readonly string[];
  /** What it was told instead of a reply. */
  readonly refusals: readonly string[];
}

/** @param replicas those that run now; they change while it works */
export async function workThrough(
  trial: string,
  turns: number,
  replicas: () => ProxyProcess[],
): Promise<Worked> {
  const some = (attempt: number) => {
    const running = replicas();
    return running[attempt % running.length]!;
  };
  const token = await insist(
    async (attempt) =>
      (await some(attempt).rpc.openSession({ run: RUN, trial, rngKey: `1/task/${trial}` })).token,
  );
  const messages: object[] = [{ role: "user", content: `fix ${trial}` }];
  const callIds: string[] = [];
  const refusals: string[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const body = { messages, tools: [EDIT], stream: true };
    const reply = await insist(async (attempt) => {
      const { text } = await call(some(attempt + turn).modelAddress, { token, body }).done;
      const joined = joinStream(text);
      if (joined.isDone && joined.finish !== undefined) return joined;
      refusals.push(text);
      throw new Error(text);
    });
    const [id] = reply.callIds;
    callIds.push(id!);
    const fn = { name: "edit", arguments: "{}" };
    messages.push(
      { role: "assistant", content: reply.content, tool_calls: [{ id, type: "function", function: fn }] },
      { role: "tool", tool_call_id: id, content: `ok ${turn}` },
    );
  }
  return { trial, token, callIds, refusals };
}

/** Until it succeeds: a replica that is gone, or says to come again, is no end. */
export async function insist<T>(attempt: (at: number) => Promise<T>): Promise<T> {
  for (let at = 0; ; at++)
    try {
      return await attempt(at);
    } catch (error) {
      expect(String(error)).not.toContain("AssertionError");
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
}
