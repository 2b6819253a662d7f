/**
 * SIGKILL between any two of: parsed, sampled, journalled, replied. The harness sees a broken connection, asks
 * another replica the same, and goes on; the journal has every finished turn once. Real processes of the proxy,
 * real nats-server; what holds a process at a point is its script or its wire, never its own code.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Delivery, TurnRelation } from "@mortise/contracts";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { type Call, call, joinStream, until } from "./http-client.js";
import { NatsRelay } from "./nats-relay.js";
import { openSession, ProxyFixture, RUN } from "./proxy-fixture.js";
import { PROCESS_TEST_MS, type ProxyProcess, ProxySite } from "./proxy-process.js";

const EDIT = { type: "function", function: { name: "edit", parameters: { type: "object", properties: {} } } };
const CALL = "ok <tool_call>edit</tool_call><|im_end|>";
const OTHER = "fix <tool_call>edit</tool_call><|im_end|>";
const END = "done<|im_end|>";
const user = { role: "user", content: "fix" };
const body = { messages: [user], tools: [EDIT], stream: true };

vi.setConfig({ testTimeout: PROCESS_TEST_MS });

let fixture: ProxyFixture;
let site: ProxySite;
let relay: NatsRelay;
let directory: string;
let script: string;
let trial = "";
let count = 0;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mortise-kill-"));
  script = join(directory, "script.jsonl");
  fixture = await ProxyFixture.create({ engine: { kind: "scripted", file: script } });
  await fixture.publishWeights(0);
  site = await ProxySite.create(fixture);
});
afterAll(async () => {
  await site.stop();
  await fixture.stop();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(() => {
  trial = `k${count++}`;
});

/** What processes started from now on sample, one after the other. */
async function play(...replies: { text: string; firstTokenMs?: number }[]): Promise<void> {
  const lines = [{ format: "mortise.engine-script", schema: 1 }, ...replies];
  await writeFile(script, lines.map((line) => JSON.stringify(line)).join("\n"));
}

async function startBehindRelay(): Promise<ProxyProcess> {
  relay = await NatsRelay.start(fixture.nats.url);
  return site.start(relay.url);
}

async function killed(process: ProxyProcess, open: Call): Promise<void> {
  await process.kill();
  await expect(open.done).rejects.toThrow();
  relay.stop();
  expect(joinStream(open.received()).isDone).toBe(false);
}

/** The same call at another replica, and then the conversation's end there. */
async function goOn(token: string) {
  const second = await site.start();
  const retried = joinStream((await call(second.modelAddress, { token, body }).done).text);
  const callId = retried.callIds[0]!;
  await finish(second, token, { text: retried.content, callId });
  return { ...retried, callId };
}

async function finish(at: ProxyProcess, token: string, reply: { text: string; callId: string }) {
  const fn = { name: "edit", arguments: "{}" };
  const echo = {
    role: "assistant",
    content: reply.text,
    tool_calls: [{ id: reply.callId, type: "function", function: fn }],
  };
  const result = { role: "tool", tool_call_id: reply.callId, content: "ok" };
  const next = { ...body, messages: [user, echo, result] };
  const { text } = await call(at.modelAddress, { token, body: next }).done;
  expect(joinStream(text)).toMatchObject({ content: "done", isDone: true });
  const turns = await fixture.turns(trial);
  expect(turns.map(({ relation }) => relation)).toEqual([TurnRelation.ROOT, TurnRelation.EXTENDS]);
  expect(turns[1]!.parent).toBe(turns[0]!.turn);
  const { seal } = await at.rpc.sealSession({ run: RUN, trial });
  expect(seal!.turns.map(({ turn }) => turn)).toEqual(turns.map(({ turn }) => turn));
  expect(seal!.turns.map(({ delivery }) => delivery)).toEqual([Delivery.DELIVERED, Delivery.DELIVERED]);
  expect(await at.end()).toBe(0);
}

test("parsed, not sampled: the retry is sampled", async () => {
  await play({ text: CALL, firstTokenMs: 600_000 });
  const first = await startBehindRelay();
  const token = await openSession(first, trial);
  const open = call(first.modelAddress, { token, body });
  await open.opened;
  await killed(first, open);
  expect(await fixture.turns(trial)).toEqual([]);
  await play({ text: OTHER }, { text: END });
  expect((await goOn(token)).content).toBe("fix ");
});

test("sampled, not journalled: nothing of it stays, the retry is sampled", async () => {
  await play({ text: CALL });
  const first = await startBehindRelay();
  const token = await openSession(first, trial);
  const held = relay.hold("before-publish");
  const open = call(first.modelAddress, { token, body });
  await held;
  await until(() => joinStream(open.received()).callIds.length > 0);
  await killed(first, open);
  expect(await fixture.turns(trial)).toEqual([]);
  await play({ text: OTHER }, { text: END });
  expect((await goOn(token)).content).toBe("fix ");
});

test("journalled, not replied: the retry gets the journalled reply, word for word and call id for call id", async () => {
  await play({ text: CALL });
  const first = await startBehindRelay();
  const token = await openSession(first, trial);
  const held = relay.hold("before-acknowledgement");
  const open = call(first.modelAddress, { token, body });
  await held;
  await until(async () => (await fixture.turns(trial)).length === 1);
  await killed(first, open);
  // Of what another replica samples, only the end of the conversation is needed.
  await play({ text: END });
  const retried = await goOn(token);
  expect(retried.content).toBe("ok ");
  expect(retried.callId).toBe((await fixture.turns(trial))[0]!.toolCalls[0]!.id);
});

test("replied: the conversation goes on at another replica", async () => {
  await play({ text: CALL });
  const first = await startBehindRelay();
  const token = await openSession(first, trial);
  const replied = joinStream((await call(first.modelAddress, { token, body }).done).text);
  expect(replied).toMatchObject({ content: "ok ", finish: "tool_calls", isDone: true });
  await first.kill();
  relay.stop();
  await play({ text: END });
  const second = await site.start();
  await finish(second, token, { text: replied.content, callId: replied.callIds[0]! });
});
