/**
 * Any bytes at the real front, under any headers: every answer has the form of its path's protocol, with a status
 * that says what happened; nothing ends the process; sessions that got all of it still work, and their records
 * are whole. A real proxy on a real bus.
 */
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { assembleTrial } from "@mortise/capture";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HERMES_TEMPLATE } from "../../packages/rendering/test/templates.js";
import { ScriptedEngine } from "../../services/proxy/src/engine/scripted/scripted-engine.js";
import { openSession, ProxyFixture, type Replica, RUN } from "../../services/proxy/test/proxy-fixture.js";
import { Bodies, type FuzzBody } from "./bodies.js";
import { expectBalanced } from "./ledger.js";
import { failure } from "./outcome.js";
import { BODIES, SEED } from "./share.js";
import { problemOfRefusal, problemOfStream, problemOfWhole } from "./wire.js";

/** A request over HTTP costs many times what reading one does. */
const REQUESTS = Math.ceil(BODIES / 10);
const TRIALS = 4;

const PATHS = {
  "openai-chat": ["/v1/chat/completions", "/chat/completions", "/any/base/v1/chat/completions?x=1"],
  "openai-responses": ["/v1/responses", "/openai/responses"],
  "anthropic-messages": ["/v1/messages?beta=true", "/a/b/v1/messages"],
} as const;

let fixture: ProxyFixture;
let replica: Replica;
const tokens: string[] = [];

beforeAll(async () => {
  fixture = await ProxyFixture.create({ chatTemplate: HERMES_TEMPLATE, maxPositions: 60_000 });
  await fixture.publishWeights(0);
  const replies = [
    "ok",
    "",
    "<think>so</think>",
    '<tool_call>\n{"name": "Bash", "arguments": {}}\n</tool_call>',
  ];
  const choose = (_: unknown, ordinal: number) => ({
    ids: fixture.ids(replies[ordinal % replies.length]!, { ends: ordinal % 7 !== 6 }),
    ...(ordinal % 50 === 49 && { failAfter: 1 }),
  });
  replica = await fixture.start(() => new ScriptedEngine({ choose }));
  for (let at = 0; at < TRIALS; at++) tokens.push(await openSession(replica, `fuzz${at}`));
}, 120_000);

afterAll(() => fixture.stop());

test(`${REQUESTS} requests are answered in form`, { timeout: 7_200_000 }, async () => {
  const bodies = new Bodies(SEED + 2);
  const statuses = new Map<number, number>();
  for (let n = 0; n < REQUESTS; n++) {
    const body = bodies.body(n);
    const sent = outgoing(body);
    const answer = await send(sent).catch((error: unknown) => {
      throw failure(body, error);
    });
    if (answer === undefined) continue;
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    const problem = problemOf(sent, answer);
    if (problem !== undefined)
      throw failure(body, `${sent.path}: ${answer.status}: ${problem}\n${answer.text}`);
    if (n % 50 === 49) await expectServing(tokens[n % TRIALS]!, `ping ${n}`);
  }
  for (const status of [200, 400, 401])
    expect(statuses.get(status) ?? 0, `answers ${status}`).toBeGreaterThan(0);
});

test("bytes that are no HTTP end their connection and nothing else", async () => {
  const long = "a".repeat(100_000);
  const lines = [
    "",
    "\u0000\u0001\u0002\r\n\r\n",
    "POST\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    `GET /${long} HTTP/1.1\r\nhost: x\r\n\r\n`,
    `POST /v1/messages HTTP/1.1\r\nhost: x\r\nx: ${long}\r\n\r\n`,
    "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
    "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
    "POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n",
    "POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "POST /v1/messages HTTP/1.1\r\nhost: x\r\nexpect: something\r\ncontent-length: 2\r\n\r\n{}",
    "CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n",
  ];
  for (const bytes of lines) {
    const text = await exchange(bytes);
    expect(
      text === "" || /^HTTP\/1\.1 (4\d\d|505) /.test(text),
      `${bytes.slice(0, 60)}: ${text.slice(0, 80)}`,
    ).toBe(true);
  }
  await expectServing(tokens[0]!, "still here");
});

test("what the sessions recorded is whole", async () => {
  for (let at = 0; at < TRIALS; at++) {
    await replica.rpc.sealSession({ run: RUN, trial: `fuzz${at}` });
    const records = await fixture.captures(`fuzz${at}`);
    const last = records.at(-1)!.record;
    if (last.case !== "sealed") throw new Error("the last record is no seal");
    const turns = records.flatMap(({ record }) => (record.case === "turn" ? [record.value] : []));
    expect(turns.length).toBeGreaterThan(0);
    expectBalanced(assembleTrial(turns, last.value));
  }
});

interface Outgoing {
  readonly dialect: FuzzBody["dialect"];
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly bytes: Buffer;
  /** Bytes after which the client is gone; undefined for one that stays. */
  readonly cutAfter: number | undefined;
  readonly isAuthorised: boolean;
}

function outgoing(body: FuzzBody): Outgoing {
  const { random, dialect } = body;
  const isAuthorised = random.chance(0.95);
  const token = isAuthorised
    ? random.pick(tokens)
    : random.pick(["", "x", tokens[0]!.slice(1), `${tokens[0]}A`]);
  const way = random.int(3);
  const path = `${way === 0 && isAuthorised ? `/s/${token}` : ""}${random.pick(PATHS[dialect])}`;
  const text = Buffer.from(body.text);
  const encoding = random.pick(["none", "none", "none", "gzip", "lie", "unknown"]);
  const bytes =
    encoding === "gzip" ? gzipSync(text) : random.chance(0.02) ? Buffer.from([0xff, 0xfe, ...text]) : text;
  const headers: Record<string, string> = {
    ...harnessHeaders(body),
    "content-type": random.pick(["application/json", "text/plain", "", "application/json; charset=utf-16"]),
    ...(way === 1 && { authorization: `Bearer ${token}` }),
    ...(way === 2 && { "x-api-key": token }),
    ...(encoding === "gzip" || encoding === "lie" ? { "content-encoding": "gzip" } : {}),
    ...(encoding === "unknown" && { "content-encoding": "snappy" }),
    ...(random.chance(0.1) && { "x-long": "y".repeat(random.int(10_000)) }),
    ...(random.chance(0.1) && {
      "user-agent": random.pick(["", "\u00ff\u00fe", "claude-cli/2", "codex_exec/9", "{}"]),
    }),
  };
  const cutAfter = random.chance(0.03) ? random.int(bytes.length + 1) : undefined;
  return {
    dialect,
    path,
    headers,
    bytes,
    cutAfter,
    isAuthorised: isAuthorised && (way !== 0 || token !== ""),
  };
}

/** What the harness sent beside the body, sometimes garbled; what frames the message is ours. */
function harnessHeaders({ headers, random }: FuzzBody): Record<string, string> {
  const framing =
    /^(content-|transfer-|connection$|host$|accept-encoding$|authorization$|x-api-key$|expect$|upgrade$)/;
  const kept = Object.entries(headers).filter(([name]) => !framing.test(name));
  return Object.fromEntries(
    kept.map(([name, value]) => [
      name,
      random.chance(0.05) ? random.pick(["", "{}", "\u00e9", "0"]) : latin1(value),
    ]),
  );
}

/** Recorded headers may have been parsed; on the wire they are text. */
function latin1(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.replace(/[^\t\x20-\x7e\x80-\xff]/g, "?");
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly requestId: string | undefined;
  readonly text: string;
}

/** Undefined when the client left. */
function send({ path, headers, bytes, cutAfter }: Outgoing): Promise<Answer | undefined> {
  return new Promise((resolve, reject) => {
    const sending = httpRequest(`http://${replica.modelAddress}${path}`, {
      method: "POST",
      agent: false,
      headers,
    });
    sending.once("error", (error) => (cutAfter === undefined ? reject(error) : resolve(undefined)));
    sending.once("response", (incoming) => {
      let text = "";
      incoming.setEncoding("utf8");
      incoming.on("data", (chunk: string) => {
        text += chunk;
      });
      incoming.once("error", reject);
      incoming.once("end", () =>
        resolve({
          status: incoming.statusCode!,
          type: incoming.headers["content-type"] ?? "",
          requestId: incoming.headers["request-id"] as string | undefined,
          text,
        }),
      );
    });
    if (cutAfter === undefined) sending.end(bytes);
    else sending.write(bytes.subarray(0, cutAfter), () => sending.destroy());
  });
}

function problemOf(sent: Outgoing, { status, type, requestId, text }: Answer): string | undefined {
  if (requestId === undefined) return "no request id";
  if (!sent.isAuthorised)
    return status === 401 ? problemOfRefusal(sent.dialect, status, text) : "not refused";
  if (status !== 200) return problemOfRefusal(sent.dialect, status, text);
  return type === "text/event-stream"
    ? problemOfStream(sent.dialect, text)
    : problemOfWhole(sent.dialect, text);
}

/** An ordinary request is answered, and so is the one that goes on from it. */
async function expectServing(token: string, text: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    const body = JSON.stringify({ messages: [{ role: "user", content: `${text}, ${tries}` }] });
    const answer = await send({
      dialect: "openai-chat",
      path: "/v1/chat/completions",
      headers: { authorization: `Bearer ${token}` },
      bytes: Buffer.from(body),
      cutAfter: undefined,
      isAuthorised: true,
    });
    // The engine was told to fail now and then; the session must not.
    if (answer?.status === 503 && tries < 3) continue;
    expect(answer?.status, answer?.text).toBe(200);
    return;
  }
}

/** Everything a server sends to these bytes until it ends the connection, or until nothing more comes. */
function exchange(bytes: string): Promise<string> {
  const [host, port] = replica.modelAddress.split(":");
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(Number(port), host, () => socket.end(bytes, "latin1"));
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      text += chunk;
    });
    socket.once("error", () => resolve(text));
    socket.once("close", () => resolve(text));
  });
}
