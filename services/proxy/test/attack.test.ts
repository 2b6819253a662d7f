/**
 * Two replicas of one run under everything at once: replicas killed in the middle of their work, nats-server killed
 * and back, hundreds of streams, clients that hang up, send rubbish or somebody else's token. What must hold then:
 * every reply that arrived whole is in the journal once, in its place; the seal counts what the journal holds; and no
 * session token is in anything that was written or answered. MORTISE_ATTACK_KILLS kills more often.
 */
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toBinary } from "@bufbuild/protobuf";
import { TurnTree } from "@mortise/capture";
import { CaptureRecordSchema, filter } from "@mortise/contracts";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { call, joinStream } from "./http-client.js";
import { ProxyFixture, RUN } from "./proxy-fixture.js";
import { type ProxyProcess, ProxySite } from "./proxy-process.js";
import { insist, type Worked, workThrough } from "./stubborn-agent.js";

const KILLS = Number(process.env.MORTISE_ATTACK_KILLS ?? 2);
const AGENTS = 4;
const TURNS = 5;
const STREAMS = Number(process.env.MORTISE_ATTACK_STREAMS ?? 100);
const OUTAGE_MS = 3_000;
/** Of a token; shorter pieces are found by chance. */
const TELLING_CHARACTERS = 24;
const LIMIT_MS = 15 * 60_000;

vi.setConfig({ testTimeout: LIMIT_MS, hookTimeout: LIMIT_MS });

let fixture: ProxyFixture;
let site: ProxySite;
let directory: string;
let replicas: ProxyProcess[] = [];
const worked: Worked[] = [];
/** Every answer a client that did wrong was given. */
const answers: string[] = [];
let named = 0;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mortise-attack-"));
  const script = join(directory, "script.jsonl");
  const reply = { times: "always", text: "ok <tool_call>edit</tool_call><|im_end|>", tokenMs: 3 };
  await writeFile(
    script,
    [{ format: "mortise.engine-script", schema: 1 }, reply].map((line) => JSON.stringify(line)).join("\n"),
  );
  fixture = await ProxyFixture.create({ maxPositions: 8_192, engine: { kind: "scripted", file: script } });
  await fixture.publishWeights(0);
  site = await ProxySite.create(fixture);
  replicas = await Promise.all([site.start(), site.start()]);
});
afterAll(async () => {
  await site.stop();
  await fixture.stop();
  await rm(directory, { recursive: true, force: true });
});

/** Agents that begin anew until `isOver`, and then finish what they began. */
async function work(isOver: () => boolean): Promise<void> {
  const agent = async () => {
    do worked.push(await workThrough(`a${named++}`, TURNS, () => replicas));
    while (!isOver());
  };
  await Promise.all(Array.from({ length: AGENTS }, agent));
}

/** Clients that do what none should, one after the other, until `isOver`. */
async function annoy(isOver: () => boolean): Promise<void> {
  const victim = `a${named++}`;
  const token = await insist(async (at) => {
    const { rpc } = replicas[at % replicas.length]!;
    return (await rpc.openSession({ run: RUN, trial: victim, rngKey: victim })).token;
  });
  const user = { role: "user", content: "fix" };
  const wrong: Parameters<typeof call>[1][] = [
    { token, raw: "{" },
    { token, raw: "[".repeat(100_000) },
    { token: `${token.slice(0, -1)}x`, body: { messages: [user] } },
    { token: "x".repeat(10_000), body: { messages: [user] } },
    { token, path: `/s/${token}/v1/nothing`, body: {} },
    { token, path: `/s/${token}/v1/messages`, body: { messages: token } },
    { token, raw: "x", headers: { "content-encoding": "gzip" } },
    { token, raw: "x", headers: { "content-encoding": token } },
  ];
  for (let at = 0; !isOver(); at++) {
    const { modelAddress } = replicas[at % replicas.length]!;
    const hung = call(modelAddress, {
      token,
      body: { messages: [user, { ...user, content: `${at}` }], stream: true },
    });
    setTimeout(() => hung.request.destroy(), at % 7);
    const { done } = call(modelAddress, wrong[at % wrong.length]!);
    const answer = await done.catch(() => undefined);
    if (answer) answers.push(answer.text, JSON.stringify(answer.headers));
    await hung.done.catch(() => {});
  }
  worked.push({ trial: victim, token, callIds: [], refusals: [] });
}

/** What the agents saw, against what the journal holds. */
async function verify({ trial, callIds }: Worked): Promise<void> {
  const seal = await insist(
    async (at) => (await replicas[at % replicas.length]!.rpc.sealSession({ run: RUN, trial })).seal!,
  );
  const turns = await fixture.turns(trial);
  const tree = new TurnTree();
  for (const turn of turns) tree.add(turn);
  expect(seal.turns.map(({ turn }) => turn)).toEqual(turns.map(({ turn }) => turn));
  expect(Number(seal.sampledTokens)).toBe(turns.reduce((sum, turn) => sum + turn.sampledIds.length / 4, 0));
  const givers = callIds.map((id) => turns.filter(({ toolCalls }) => toolCalls.some((one) => one.id === id)));
  expect(givers.map((of) => of.length)).toEqual(callIds.map(() => 1));
  const path = givers.map(([turn]) => turn!);
  expect(path.map(({ parent }) => parent)).toEqual(path.map((_, at) => path[at - 1]?.turn ?? ""));
}

test("replicas are killed under load: no reply is lost, doubled or out of its place", async () => {
  let isOver = false;
  const busy = Promise.all([work(() => isOver), annoy(() => isOver)]);
  for (let kill = 0; kill < KILLS; kill++) {
    const [oldest, other] = replicas as [ProxyProcess, ProxyProcess];
    replicas = [other];
    await oldest.kill();
    replicas = [other, await site.start()];
  }
  isOver = true;
  await busy;
  for (const one of worked) await verify(one);
  expect(worked.reduce((sum, { callIds }) => sum + callIds.length, 0)).toBeGreaterThanOrEqual(AGENTS * TURNS);
});

test("nats-server is killed and back under attack: what arrived is there, and work goes on", async () => {
  const before = worked.length;
  let isOver = false;
  const busy = Promise.all([work(() => isOver), annoy(() => isOver)]);
  await new Promise((resolve) => setTimeout(resolve, 500));
  await fixture.nats.kill();
  await new Promise((resolve) => setTimeout(resolve, OUTAGE_MS));
  await fixture.nats.restart();
  isOver = true;
  await busy;
  for (const one of worked.slice(before)) await verify(one);
});

test("hundreds of streams at once: each that was not hung up on ends whole", async () => {
  const trials = Array.from({ length: STREAMS / 10 }, (_, at) => `m${at}`);
  const tokens = await Promise.all(
    trials.map((trial) =>
      insist(async () => (await replicas[0]!.rpc.openSession({ run: RUN, trial })).token),
    ),
  );
  // All streams of a session go to one replica: two that append to one session are the tests above.
  const streams = Array.from({ length: STREAMS }, (_, at) => {
    const session = at % tokens.length;
    const body = { messages: [{ role: "user", content: `fix ${at}` }], stream: true };
    return call(replicas[session % 2]!.modelAddress, { token: tokens[session]!, body });
  });
  for (const one of streams.slice(0, STREAMS / 10)) void one.opened.then(() => one.request.destroy());
  const whole = await Promise.all(streams.slice(STREAMS / 10).map((one) => one.done));
  expect(whole.map(({ text }) => joinStream(text).isDone)).toEqual(whole.map(() => true));
  for (const [at, trial] of trials.entries())
    worked.push({ trial, token: tokens[at]!, callIds: [], refusals: [] });
  for (const one of worked.slice(-trials.length)) await verify(one);
});

test("no token is in a log, a metric, an answer, a file or a record", async () => {
  const metrics = await Promise.all(
    replicas.map(async ({ httpAddress }) => (await fetch(`http://${httpAddress}/metrics`)).text()),
  );
  const files = await readdir(site.directory, { recursive: true, withFileTypes: true });
  const contents = await Promise.all(
    files.filter((one) => one.isFile()).map((one) => readFile(join(one.parentPath, one.name), "latin1")),
  );
  const records: string[] = [];
  const follow = await fixture.admin.follow({
    stream: "CAPTURES",
    filters: [filter.captures(RUN)],
    from: "first",
    schema: CaptureRecordSchema,
    onMessage: (record) =>
      void records.push(Buffer.from(toBinary(CaptureRecordSchema, record)).toString("latin1")),
  });
  await follow.caughtUp;
  await follow.stop();
  const refusals = worked.flatMap((one) => one.refusals);
  const everything = {
    log: site.output,
    metrics: metrics.join(),
    answers: answers.join(),
    refusals: refusals.join(),
    files: contents.join(),
    records: records.join(),
  };
  for (const [what, text] of Object.entries(everything)) {
    expect(what === "refusals" || text.length > 0).toBe(true);
    for (const { token } of worked)
      for (let at = 0; at + TELLING_CHARACTERS <= token.length; at += TELLING_CHARACTERS)
        expect(text.includes(token.slice(at, at + TELLING_CHARACTERS)), what).toBe(false);
  }
});
