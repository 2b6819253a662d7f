/**
 * Bodies of many megabytes beside live streams: what takes long is done by another thread, in the order of its
 * session, with the same ids; and bodies are bounded together. How long the proxy's own thread is held is measured
 * in CPU time of that thread between two of its ticks, which other work on the machine does not change.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createLog, ManualClock, systemClock } from "@mortise/kernel";
import { openCheckpoint } from "@mortise/policy";
import { Renderer } from "@mortise/rendering";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { Bodies } from "../src/front/body.js";
import { RenderPool } from "../src/rendering/render-pool.js";
import { call, joinStream, until } from "./http-client.js";
import { openSession, ProxyFixture, type Replica } from "./proxy-fixture.js";
import { ScriptedEngine } from "./scripted-engine.js";

const MAX_POSITIONS = 3_000_000;
const LARGE_BYTES = 20_000_000;
const STREAMS = 4;
/** Parsing, copying and digesting 20 MB; rendering and tokenising them takes several times as long. */
const HELD_MS = 400;

vi.setConfig({ testTimeout: 180_000 });

let fixture: ProxyFixture;
let replica: Replica;
let engine: ScriptedEngine;
let count = 0;

beforeAll(async () => {
  fixture = await ProxyFixture.create({ maxPositions: MAX_POSITIONS, maxTokensPerTurn: 100_000 });
  engine = new ScriptedEngine();
  replica = await fixture.start(() => engine);
  await fixture.publishWeights(0);
});
afterAll(() => fixture.stop());

const open = () => openSession(replica, `l${count++}`);
const body = (content: string) => ({ messages: [{ role: "user", content }] });
const ask = (token: string, content: string) =>
  call(replica.modelAddress, { token, body: { ...body(content), stream: true } });
const words = (bytes: number) =>
  Array.from({ length: bytes / 10 }, (_, at) => `w${at.toString(36)} `.padEnd(10, "x")).join("");

/** CPU milliseconds of this thread between two ticks of its loop, at most, until it is stopped. */
function watchLoop(): () => { longestMs: number; ticks: number } {
  const seen = { longestMs: 0, ticks: 0 };
  let last = process.threadCpuUsage();
  let isWatching = true;
  const tick = () => {
    const { user, system } = process.threadCpuUsage(last);
    last = process.threadCpuUsage();
    seen.longestMs = Math.max(seen.longestMs, (user + system) / 1000);
    seen.ticks++;
    if (isWatching) setTimeout(tick, 1);
  };
  tick();
  return () => {
    isWatching = false;
    return seen;
  };
}

describe("20 MB beside live streams", () => {
  const bodies = {
    "a text of many words": () => JSON.stringify(body(words(LARGE_BYTES))),
    "one word": () => JSON.stringify(body("s".repeat(LARGE_BYTES))),
    "millions of values": () => `{"messages":[${"[],".repeat(LARGE_BYTES / 3)}[]]}`,
  };
  test.each(Object.entries(bodies))("%s", async (_name, write) => {
    // The thread that renders has started; that is not what is looked at.
    engine.play({ ids: fixture.ids("ok") });
    await ask(await open(), words(40_000)).done;
    const raw = Buffer.from(write());
    const token = await open();
    const ids = fixture.ids("x".repeat(20_000));
    engine.play(...Array.from({ length: STREAMS }, () => ({ ids, tokenMs: 2 })));
    const streams = await Promise.all(Array.from({ length: STREAMS }, async () => ask(await open(), "go")));
    await until(() => streams.every((one) => joinStream(one.received()).content !== ""));
    const before = streams.map((one) => one.received().length);
    const stop = watchLoop();
    const answer = await call(replica.modelAddress, { token, raw }).done;
    const { longestMs, ticks } = stop();
    const meanwhile = streams.map((one, at) => one.received().length - before[at]!);
    for (const one of streams) one.request.destroy();
    expect(answer.status).toBe(400);
    expect(longestMs).toBeLessThan(HELD_MS);
    expect(ticks).toBeGreaterThan(10);
    for (const characters of meanwhile) expect(characters).toBeGreaterThan(0);
  });
});

test("what another thread renders has the ids that it has here", async () => {
  const { chatTemplate, tokenizer, eosIds } = await openCheckpoint(fixture.checkpoint);
  const renderer = new Renderer({ chatTemplate, tokenizer, eosIds });
  const content = `${words(60_000)}<|im_end|>é漢😀\n\n  ${"s".repeat(2_000)}`;
  engine.play({ ids: fixture.ids("ok") });
  await ask(await open(), content).done;
  const { ids } = renderer.renderWhole({ messages: [{ role: "user", text: content }], tools: [] });
  expect(engine.requests.at(-1)!.contextIds).toEqual(ids);
});

test("calls of one session are planned in the order they came, small ones behind a large one", async () => {
  const token = await open();
  engine.play({ ids: fixture.ids("one") }, { ids: fixture.ids("two") });
  const large = ask(token, words(400_000));
  await new Promise((resolve) => large.request.once("finish", resolve));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const small = ask(token, "small");
  const [first, second] = await Promise.all([large.done, small.done]);
  expect(joinStream(first.text).content).toBe("one");
  expect(joinStream(second.text).content).toBe("two");
  const turns = await fixture.turns(`l${count - 1}`);
  expect(turns.map(({ index }) => index)).toEqual([0, 1]);
});

test("hundreds of sessions that begin at once all begin", async () => {
  const tokens = await Promise.all(Array.from({ length: 200 }, open));
  engine.play(...tokens.map(() => ({ ids: fixture.ids("ok") })));
  const content = words(20_000);
  const answers = await Promise.all(tokens.map((token) => ask(token, content).done));
  expect(answers.map(({ text }) => joinStream(text).content)).toEqual(tokens.map(() => "ok"));
});

test("the same large call after a broken connection is not sampled twice", async () => {
  const token = await open();
  const content = words(2_000_000);
  const before = engine.requests.length;
  engine.play({ ids: fixture.ids("ok done") });
  const first = ask(token, content);
  await new Promise((resolve) => first.request.once("finish", resolve));
  first.request.destroy();
  expect(joinStream((await ask(token, content).done).text).content).toBe("ok done");
  expect(engine.requests.length).toBe(before + 1);
});

test("a thread that is held too long is ended, and another renders the next call", async () => {
  const { chatTemplate, tokenizer, tokenizerFiles, eosIds } = await openCheckpoint(fixture.checkpoint);
  const clock = new ManualClock();
  const pool = new RenderPool({ clock, log: createLog({ service: "proxy", level: "silent" }), threads: 1 });
  const renderer = new Renderer({ chatTemplate, tokenizer, eosIds });
  const run = pool.forRun("r", renderer, { files: tokenizerFiles, eosIds, policy: {} });
  const task = (text: string) => ({
    conversation: { messages: [{ role: "user" as const, text }], tools: [] },
    kept: undefined,
    maxTokens: Number.POSITIVE_INFINITY,
  });
  const held = run.render(task(words(LARGE_BYTES)));
  const next = run.render(task(words(40_000)));
  clock.advance(60_000);
  await expect(held).rejects.toMatchObject({ code: "MORTISE_PROVIDER_TOO_LARGE" });
  await expect(next).resolves.toMatchObject({ kind: "whole" });
  await pool.close();
});

describe("bodies together", () => {
  let server: Server;
  let pool: RenderPool;
  const waiting: (() => void)[] = [];
  const refusals: unknown[] = [];

  beforeAll(async () => {
    pool = new RenderPool({ clock: systemClock, log: createLog({ service: "proxy", level: "silent" }) });
    const bodies = new Bodies(pool, { maxAllBytes: 1_000, maxSessionBytes: 700 });
    server = createServer((request, response) => {
      bodies
        .use(request, request.url!, () => new Promise<void>((resolve) => waiting.push(resolve)))
        .catch((error: unknown) => refusals.push(error))
        .finally(() => response.end());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    server.close();
    await pool.close();
  });

  test("are refused above their bound until one of them is done with", async () => {
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const send = (session: string, bytes = 600) =>
      call(address, { path: session, raw: JSON.stringify("x".repeat(bytes)) });
    const first = send("/a");
    await until(() => waiting.length === 1);
    await send("/b").done;
    const full = { code: "MORTISE_TRANSPORT_FULL", retryAfterMs: expect.any(Number) };
    expect(refusals).toMatchObject([full]);
    // What one session has taken is its own bound, before that of all.
    await send("/a", 200).done;
    expect(refusals.splice(0)).toMatchObject([
      full,
      { ...full, message: expect.stringContaining("700 bytes") },
    ]);
    const beside = send("/b", 200);
    await until(() => waiting.length === 2);
    for (const end of waiting.splice(0)) end();
    await Promise.all([first.done, beside.done]);
    const third = send("/a");
    await until(() => waiting.length === 1);
    waiting.pop()!();
    await third.done;
    expect(refusals).toEqual([]);
  });
});
