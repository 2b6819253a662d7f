/** Retries, lost connections, tokens, seals, restarts, races: what must hold when things go wrong (C3, C6, C9). */
import { assembleTrial } from "@mortise/capture";
import { Delivery, ExclusionReason, FinishReason, TurnRelation } from "@mortise/contracts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { MAX_RUNNING_TURNS } from "../src/session/session.js";
import { call, joinStream, until } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";
import { ScriptedEngine } from "./scripted-engine.js";

const body = { messages: [{ role: "user", content: "fix" }] };
const streamed = { ...body, stream: true };

let fixture: ProxyFixture;
let replica: Replica;
let engine: ScriptedEngine;
let trial = "";
let count = 0;

beforeAll(async () => {
  fixture = await ProxyFixture.create();
  engine = new ScriptedEngine();
  replica = await fixture.start(() => engine);
  await fixture.publishWeights(0);
});
afterAll(() => fixture.stop());
beforeEach(() => {
  trial = `s${count++}`;
});

const seal = (at = replica) => at.rpc.sealSession({ run: RUN, trial });
const ask = (token: string, request: object = body, at = replica) =>
  call(at.modelAddress, { token, body: request });
const contentOf = (text: string) => JSON.parse(text).choices[0].message.content as string;

/** Starts a held, streamed reply and hangs up after its first event. */
async function hangUp(token: string): Promise<void> {
  const first = ask(token, streamed);
  await until(() => first.received() !== "" && engine.held.length > 0);
  first.request.destroy();
  await new Promise((resolve) => setTimeout(resolve, 50));
}

test("a session has its turns at the engine counted: one too many is told to come again", async () => {
  const token = await openSession(replica, trial);
  engine.play(
    ...Array.from({ length: MAX_RUNNING_TURNS }, () => ({ ids: fixture.ids("done"), holdAfter: 1 })),
  );
  const message = (n: number) => ({ messages: [{ role: "user", content: `fix ${n}` }], stream: true });
  const held = Array.from({ length: MAX_RUNNING_TURNS }, (_, n) => ask(token, message(n)));
  await until(() => engine.held.length === MAX_RUNNING_TURNS);
  const refused = await ask(token, message(MAX_RUNNING_TURNS)).done;
  expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"]);
  for (const one of [...engine.held]) one.release();
  await Promise.all(held.map((one) => one.done));
  expect((await seal()).seal!.turns).toHaveLength(MAX_RUNNING_TURNS);
});

describe("retries (C6)", () => {
  test("the same body after a broken connection joins the turn being sampled", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("done ok"), holdAfter: 1 });
    const before = engine.requests.length;
    await hangUp(token);
    const retry = ask(token, streamed);
    await retry.opened;
    engine.held[0]!.release();
    expect(joinStream((await retry.done).text)).toMatchObject({ content: "done ok", isDone: true });
    expect(engine.requests.length).toBe(before + 1);
    const { seal: sealed } = await seal();
    expect(sealed!.turns.map((turn) => turn.delivery)).toEqual([Delivery.DELIVERED]);
  });

  test("the same body after the turn was captured undelivered is answered word for word", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("done ok"), holdAfter: 1 });
    await hangUp(token);
    engine.held[0]!.release();
    await until(async () => (await fixture.turns(trial)).length === 1);
    const before = engine.requests.length;
    expect(contentOf((await ask(token).done).text)).toBe("done ok");
    expect(engine.requests.length).toBe(before);
    expect((await seal()).seal!.turns).toHaveLength(1);
  });

  test("after a completed reply the same body is sampled anew and the first is a rejected leaf", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("done") }, { ids: fixture.ids("ok") });
    expect(contentOf((await ask(token).done).text)).toBe("done");
    expect(contentOf((await ask(token).done).text)).toBe("ok");
    const turns = await fixture.turns(trial);
    expect(turns.map((turn) => turn.relation)).toEqual([TurnRelation.ROOT, TurnRelation.RETRY]);
    const rows = assembleTrial(turns, (await seal()).seal!);
    expect(rows.sequences).toHaveLength(2);
    expect(rows.exclusions.size).toBe(0);
  });

  test("two identical requests whose connections are both open are two samples", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("done"), holdAfter: 1 }, { ids: fixture.ids("ok"), holdAfter: 1 });
    const both = [ask(token), ask(token)];
    await until(() => engine.held.length === 2);
    for (const held of [...engine.held]) held.release();
    const texts = await Promise.all(both.map(async (one) => contentOf((await one.done).text)));
    expect(texts.sort()).toEqual(["done", "ok"]);
    expect(await fixture.turns(trial)).toHaveLength(2);
  });

  test("a reply nobody got and nobody asked for again is excluded as abandoned", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("done ok"), holdAfter: 1 });
    await hangUp(token);
    engine.held[0]!.release();
    await until(async () => (await fixture.turns(trial)).length === 1);
    const rows = assembleTrial(await fixture.turns(trial), (await seal()).seal!);
    expect(rows.exclusions).toEqual(new Map([[ExclusionReason.ABANDONED, rows.sampledTokens]]));
  });

  test("an engine failure is retryable, and a later success clears it from the seal", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: [], failAfter: 0 }, { ids: fixture.ids("done") });
    const failed = await ask(token).done;
    expect(failed).toMatchObject({ status: 503, headers: { "x-should-retry": "true" } });
    expect(failed.text).not.toMatch(/Scripted/);
    expect((await ask(token).done).status).toBe(200);
    expect((await seal()).seal!.failure).toBe("");
  });

  test("a session whose last request the engine failed says so in its seal", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: [], failAfter: 0 });
    const text = (await ask(token, streamed).done).text;
    expect(joinStream(text)).toMatchObject({ error: { code: "temporarily_unavailable" }, isDone: false });
    expect((await seal()).seal!.failure).toBe("MORTISE_PROVIDER_ENGINE");
  });
});

describe("tokens", () => {
  test("nothing but the trial's own live token is served, and the refusal says nothing", async () => {
    const token = await openSession(replica, trial);
    const flipped = `${token.slice(0, 30)}${token[30] === "A" ? "B" : "A"}${token.slice(31)}`;
    const answers = await Promise.all(
      [undefined, "", "x", flipped, `${token}AA`].map(
        (wrong) => call(replica.modelAddress, { body, ...(wrong !== undefined && { token: wrong }) }).done,
      ),
    );
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([401]));
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    expect(answers[0]!.text).not.toContain(trial);
    await seal();
    expect((await ask(token).done).status).toBe(401);
  });

  test("opening again gives the same session and token", async () => {
    const token = await openSession(replica, trial);
    expect(await openSession(replica, trial)).toBe(token);
    expect(Buffer.from(token, "base64url").toString("latin1")).not.toContain(trial);
  });
});

describe("seals", () => {
  test("are idempotent, name every turn, and refuse a reopening", async () => {
    const token = await openSession(replica, trial, { evaluation: true });
    engine.play({ ids: fixture.ids("done") });
    await ask(token).done;
    const first = await seal();
    expect(await seal()).toEqual(first);
    const records = await fixture.captures(trial);
    expect(records.map((one) => one.record.case)).toEqual(["turn", "sealed"]);
    expect(first.seal).toMatchObject({ evaluation: true, sampledTokens: BigInt(fixture.ids("done").length) });
    expect(first.seal!.lastSequence).toBe(first.seal!.turns[0]!.sequence);
    expect(first.seal).toMatchObject({ lowestVersion: 0n, highestVersion: 0n });
    await expect(replica.rpc.openSession({ run: RUN, trial })).rejects.toMatchObject({
      code: "MORTISE_PROVIDER_UNAUTHORIZED",
    });
  });

  test("a session without turns seals with no tokens and no versions", async () => {
    await openSession(replica, trial);
    const { seal: sealed } = await seal();
    expect(sealed).toMatchObject({ sampledTokens: 0n, lastSequence: 0n, turns: [] });
    expect(sealed!.lowestVersion).toBeUndefined();
  });

  test("a turn in flight is cut, its tokens are recorded and excluded", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("done ok"), holdAfter: 2 });
    const open = ask(token, streamed);
    await until(() => engine.held.length > 0);
    const { seal: sealed } = await seal();
    expect(joinStream((await open.done).text)).toMatchObject({
      error: { code: "invalid_api_key" },
      isDone: false,
    });
    const turns = await fixture.turns(trial);
    expect(turns[0]!.finish).toBe(FinishReason.ABORT);
    expect(sealed!.sampledTokens).toBe(2n);
    expect(assembleTrial(turns, sealed!).exclusions).toEqual(new Map([[ExclusionReason.ABANDONED, 2]]));
  });

  test("the budget that ended the trial is named", async () => {
    const token = await openSession(replica, trial, { budget: { turns: 1 } });
    engine.play({ ids: fixture.ids("done") });
    await ask(token).done;
    const refused = await ask(token).done;
    expect(refused).toMatchObject({ status: 403, headers: { "x-should-retry": "false" } });
    expect(JSON.parse(refused.text).error.code).toBe("session_budget_reached");
    expect((await seal()).seal!.budgetReached).toBe("turns");
  });

  test("token budgets limit what is sent and what is sampled", async () => {
    const token = await openSession(replica, trial, { budget: { responseTokens: 3n, promptTokens: 1000n } });
    engine.play({ ids: fixture.ids("done ok done") });
    expect(JSON.parse((await ask(token).done).text)).toMatchObject({ usage: { completion_tokens: 3 } });
    expect((await ask(token).done).status).toBe(403);
    expect((await seal()).seal!.budgetReached).toBe("response_tokens");
  });
});

describe("weights", () => {
  test("a swap during a turn shows as spans, and engines acknowledge", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("done ok"), holdAfter: 2 });
    const open = ask(token);
    await until(() => engine.held.length > 0);
    await fixture.publishWeights(1);
    await until(() => engine.status().loaded?.version === 1);
    engine.held[0]!.release();
    await open.done;
    const [turn] = await fixture.turns(trial);
    expect(turn!.spans).toMatchObject([
      { start: 0, length: 2, policyVersion: 0n, staleCache: false },
      { start: 2, policyVersion: 1n, staleCache: true },
    ]);
    expect((await seal()).seal).toMatchObject({ lowestVersion: 0n, highestVersion: 1n });
    await until(async () => (await replica.rpc.getProxyStatus({})).engines[0]!.version === 1n);
  });

  test("damaged weights are not loaded; the next good ones are", async () => {
    await fixture.publishWeights(2, { sha256: "0".repeat(64) });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(engine.status().loaded?.version).toBe(1);
    await fixture.publishWeights(3);
    await until(() => engine.status().loaded?.version === 3);
  });

  test("a manifest that does not decode is passed over; the proxy lives and takes the next", async () => {
    const kv = await fixture.admin.kv("weights");
    await kv.put(RUN, new Uint8Array([0xff, 0xff, 0xff]));
    await kv.put("another-run", new Uint8Array([0x0a, 0xff]));
    await fixture.publishWeights(4);
    await until(() => engine.status().loaded?.version === 4);
  });
});

describe("restarts and races", () => {
  test("another replica recognises the token, replays the undelivered turn and goes on", async () => {
    const token = await openSession(replica, trial, { rngKey: "kept" });
    engine.play({ ids: fixture.ids("done"), holdAfter: 1 });
    await hangUp(token);
    engine.held[0]!.release();
    await until(async () => (await fixture.turns(trial)).length === 1);

    const second = new ScriptedEngine();
    const after = await fixture.start(() => second);
    second.play({ ids: fixture.ids("ok") });
    const replayed = await ask(token, body, after).done;
    expect(contentOf(replayed.text)).toBe("done");
    expect(second.requests).toHaveLength(0);
    const next = {
      messages: [...body.messages, { role: "assistant", content: "done" }, { role: "user", content: "x" }],
    };
    expect(contentOf((await ask(token, next, after).done).text)).toBe("ok");
    expect(second.requests[0]).toMatchObject({ rngKey: "kept", turnIndex: 1 });
    expect((await fixture.turns(trial))[1]).toMatchObject({ parent: `${trial}-t0`, index: 1 });

    // The first replica does not know of turn 1: its append must lose, and its harness must be told to retry.
    engine.play({ ids: fixture.ids("lost") });
    expect((await ask(token, { messages: [{ role: "user", content: "zombie" }] }).done).status).toBe(503);
    expect(await fixture.turns(trial)).toHaveLength(2);
    const sealed = await seal(after);
    expect(sealed.seal!.turns).toHaveLength(2);
    expect(await seal(replica)).toEqual(sealed);
  });

  test("a replica that never saw the session seals it from the journal alone", async () => {
    const token = await openSession(replica, trial, { evaluation: true });
    engine.play({ ids: fixture.ids("done") }, { ids: fixture.ids("ok") });
    await ask(token).done;
    const after = await fixture.start(() => new ScriptedEngine());
    const sealed = await seal(after);
    expect(sealed.seal).toMatchObject({
      evaluation: true,
      sampledTokens: BigInt(fixture.ids("done").length),
    });
    expect(await seal(replica)).toEqual(sealed);
    expect((await ask(token).done).status).toBe(401);
  });
});
