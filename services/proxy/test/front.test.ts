/** What harnesses find at the model API: routes, probes, credentials, bodies, and the shapes of refusals. */
import { once } from "node:events";
import { connect } from "node:net";
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { createLog } from "@mortise/kernel";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { SessionTokens } from "../src/session/token.js";
import { call, until } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";
import { ScriptedEngine } from "./scripted-engine.js";

const user = { role: "user", content: "fix" };

/** One call of each protocol, as its harnesses make it. */
const PROTOCOLS = [
  {
    name: "openai-chat",
    path: "/chat/completions",
    headers: {},
    body: { messages: [user] },
    textOf: (json: Json) => json.choices[0].message.content,
    errorOf: (json: Json) => json.error.code,
    unauthorized: "invalid_api_key",
    notFound: "not_found",
  },
  {
    name: "openai-responses",
    path: "/responses",
    headers: {},
    body: { input: "fix" },
    textOf: (json: Json) => json.output[0].content[0].text,
    errorOf: (json: Json) => json.error.code,
    unauthorized: "invalid_api_key",
    notFound: "not_found",
  },
  {
    name: "anthropic-messages",
    path: "/messages",
    headers: { "anthropic-version": "2023-06-01" },
    body: { max_tokens: 100, messages: [user] },
    textOf: (json: Json) => json.content[0].text,
    errorOf: (json: Json) => json.error.type,
    unauthorized: "authentication_error",
    notFound: "not_found_error",
  },
] as const;

// biome-ignore lint/suspicious/noExplicitAny: bodies of three protocols, looked at field by field
type Json = any;

let fixture: ProxyFixture;
let replica: Replica;
let engine: ScriptedEngine;
let logged = "";
let trial = "";
let token = "";
let count = 0;

beforeAll(async () => {
  const write = (line: string) => {
    logged += line;
  };
  const log = createLog({ service: "proxy", level: "debug", destination: { write } });
  fixture = await ProxyFixture.create({ maxPositions: 300 });
  engine = new ScriptedEngine();
  replica = await fixture.start(() => engine, { log });
  await fixture.publishWeights(0);
});
afterAll(() => fixture.stop());
beforeEach(async () => {
  trial = `front-trial-${count++}`;
  token = await openSession(replica, trial);
});

async function ask(options: Parameters<typeof call>[1]) {
  const answer = await call(replica.modelAddress, { token, ...options }).done;
  return { ...answer, json: answer.text.startsWith("{") ? (JSON.parse(answer.text) as Json) : undefined };
}

const get = (path: string, headers = {}) => ask({ path, headers, method: "GET" });

describe.each(PROTOCOLS)("$name", ({ path, headers, body, textOf, errorOf, unauthorized, notFound }) => {
  test.each(["", "/v1", "/any/base/v1", "/v1/"])("[1] is served below the base path %j", async (base) => {
    engine.play({ ids: fixture.ids("done") });
    const { status, json } = await ask({ path: base.replace(/\/$/, "") + path, headers, body });
    expect(status).toBe(200);
    expect(textOf(json)).toBe("done");
  });

  test("[2] an unknown query is ignored", async () => {
    engine.play({ ids: fixture.ids("done") });
    expect((await ask({ path: `/v1${path}?beta=true&x=%zz`, headers, body })).status).toBe(200);
  });

  test("[5] the token is a bearer or an API key, and may stand beside a dummy", async () => {
    const ways = [
      { authorization: `Bearer ${token}` },
      { "x-api-key": token },
      { authorization: "Bearer dummy", "x-api-key": token },
      { authorization: `Bearer ${token}`, "x-api-key": "dummy" },
    ];
    for (const credentials of ways) {
      engine.play({ ids: fixture.ids("done") });
      const answer = await call(replica.modelAddress, {
        path: `/v1${path}`,
        headers: { ...headers, ...credentials },
        body,
      }).done;
      expect(answer.status).toBe(200);
    }
  });

  test("[16] the token may be part of the base URL, whatever key is sent", async () => {
    engine.play({ ids: fixture.ids("done") });
    const inPath = { path: `/s/${token}/v1${path}`, headers, body };
    const answer = await call(replica.modelAddress, { ...inPath, token: "dummy" }).done;
    expect(answer.status).toBe(200);
    expect((await fixture.turns(trial))[0]).toMatchObject({ trial, run: RUN });
  });

  test("[60] a wrong, altered, foreign or missing token: 401 in the protocol's words, the same for all", async () => {
    const foreign = new SessionTokens("another site").issue({
      run: RUN,
      trial,
      isEvaluation: false,
      rngKey: "x",
      budget: { turns: 0, promptTokens: 0, responseTokens: 0, wallClockMs: 0, turnsWithoutCall: 0 },
    });
    const altered = `${token.slice(0, 40)}${token[40] === "A" ? "B" : "A"}${token.slice(41)}`;
    const answers = await Promise.all(
      [undefined, "", "x", altered, foreign].map(
        (wrong) =>
          call(replica.modelAddress, {
            path: `/v1${path}`,
            headers,
            body,
            ...(wrong !== undefined && { token: wrong }),
          }).done,
      ),
    );
    for (const { status, text } of answers) {
      expect(status).toBe(401);
      expect(errorOf(JSON.parse(text))).toBe(unauthorized);
      expect(text).not.toContain(trial);
    }
    const withoutIds = answers.map(({ text }) => text.replace(/req_[0-9a-f]+/, ""));
    expect(new Set(withoutIds).size).toBe(1);
  });

  test("[60] a token is dead once its session is sealed", async () => {
    await replica.rpc.sealSession({ run: RUN, trial });
    const { status, json } = await ask({ path: `/v1${path}`, headers, body });
    expect(status).toBe(401);
    expect(errorOf(json)).toBe(unauthorized);
  });

  test("[7] any model name is served and echoed", async () => {
    engine.play({ ids: fixture.ids("done") });
    const { json } = await ask({ path: `/v1${path}`, headers, body: { ...body, model: "some/alias-4" } });
    expect(json.model).toBe("some/alias-4");
  });

  test("[9] unknown headers, betas and fields are ignored", async () => {
    engine.play({ ids: fixture.ids("done") });
    const odd = { ...headers, "anthropic-beta": "a,b", "x-stainless-timeout": "600", upgrade: "h2c" };
    const { status } = await ask({ path: `/v1${path}`, headers: odd, body: { ...body, no_such_field: {} } });
    expect(status).toBe(200);
  });

  test("[10] headers of a stream go out before anything is sampled", async () => {
    engine.play({ ids: fixture.ids("done"), holdAfter: 0 });
    const open = call(replica.modelAddress, {
      token,
      path: `/v1${path}`,
      headers,
      body: { ...body, stream: true },
    });
    expect((await open.opened).statusCode).toBe(200);
    await until(() => open.received() !== "");
    expect(engine.held).toHaveLength(1);
    engine.held[0]!.release();
    expect((await open.done).text).toContain("done");
  });

  test("[11] events are flushed one by one, in plain text, whatever encodings the client takes", async () => {
    const ids = fixture.ids("done ok");
    engine.play({ ids, holdAfter: 2 });
    const open = call(replica.modelAddress, {
      token,
      path: `/v1${path}`,
      headers: { ...headers, "accept-encoding": "gzip, br, zstd" },
      body: { ...body, stream: true },
    });
    const { headers: got } = await open.opened;
    expect(got["content-type"]).toBe("text/event-stream");
    expect(got["content-encoding"]).toBeUndefined();
    await until(() => /delta/.test(open.received().replace("message_delta", "")));
    engine.held[0]!.release();
    await open.done;
  });

  test("[13] every answer has a request id of its own, refusals too", async () => {
    engine.play({ ids: fixture.ids("done") });
    const answers = [
      await ask({ path: `/v1${path}`, headers, body }),
      await ask({ path: `/v1${path}`, headers, raw: "{" }),
      await call(replica.modelAddress, { path: `/v1${path}`, headers, body }).done,
      await ask({ path: `/v1${path}/no/such`, headers, body }),
    ];
    const ids = answers.map((answer) => answer.headers["request-id"]);
    expect(new Set(ids).size).toBe(4);
    for (const id of ids) expect(id).toMatch(/^req_[0-9a-f]{32}$/);
  });

  test("[20] an unknown route is a 404 in the protocol's own JSON", async () => {
    for (const method of ["GET", "POST", "DELETE"]) {
      const answer = await ask({ path: `/v1${path}/no/such`, headers, method });
      expect(answer.status).toBe(404);
      expect(errorOf(answer.json)).toBe(notFound);
    }
  });
});

describe("probes", () => {
  test("[3] whether anybody is there is told to everybody", async () => {
    for (const path of ["/", "/v1", `/s/${token}`, "/api/hello"]) {
      const { status, text } = await call(replica.modelAddress, { path, method: "HEAD" }).done;
      expect([status, text]).toEqual([200, ""]);
    }
    expect((await call(replica.modelAddress, { path: "/api/hello", method: "GET" }).done).status).toBe(200);
  });

  test("[4] models are listed in the shape of the protocol that asks, and any name is one", async () => {
    const anthropic = { "anthropic-version": "2023-06-01" };
    expect((await get("/v1/models")).json).toEqual({
      object: "list",
      data: [{ id: "policy", object: "model", created: 0, owned_by: "mortise" }],
    });
    expect((await get("/v1/models", anthropic)).json).toMatchObject({
      data: [{ type: "model", id: "policy", display_name: "policy" }],
      has_more: false,
      first_id: "policy",
      last_id: "policy",
    });
    expect((await get("/base/models/org/a%20b")).json).toMatchObject({ id: "org/a b", object: "model" });
    expect((await get("/v1/models/alias", anthropic)).json).toMatchObject({ id: "alias", type: "model" });
    expect((await get("/v1/models/%E0%A4%A")).status).toBe(400);
    expect((await call(replica.modelAddress, { path: "/v1/models", method: "GET" }).done).status).toBe(401);
  });

  test("[21] telemetry is taken and dropped", async () => {
    for (const path of ["/api/event_logging/batch", "/v1/metrics", "/v1/traces", "/api/telemetry"]) {
      const { status, text } = await call(replica.modelAddress, { path, raw: "x".repeat(10_000) }).done;
      expect([status, text]).toEqual([200, "{}"]);
    }
  });

  test.each(["/v1/responses", `/no/such`])("[109] a WebSocket at %s is refused with 426", async (path) => {
    const { port } = new URL(`http://${replica.modelAddress}`);
    const socket = connect(Number(port), "127.0.0.1");
    const handshake = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${handshake.join("\r\n")}\r\n\r\n`);
    const [data] = (await once(socket, "data")) as [Buffer];
    expect(data.toString()).toMatch(/^HTTP\/1\.1 426 /);
    socket.destroy();
  });

  test("[111] compaction on our side is not offered", async () => {
    const { status, json } = await ask({ path: "/v1/responses/compact", body: { input: "fix" } });
    expect([status, json.error.code]).toEqual([404, "not_found"]);
  });
});

describe("[66] counting tokens", () => {
  const path = "/v1/messages/count_tokens";
  const headers = { "anthropic-version": "2023-06-01" };
  const tools = [{ name: "edit", description: "", input_schema: { type: "object", properties: {} } }];

  test("is exact: what the same request then sends is what was counted, also in mid-conversation", async () => {
    const messages: object[] = [user];
    for (const reply of ["done", "ok"]) {
      const counted = await ask({ path, headers, body: { messages, tools } });
      engine.play({ ids: fixture.ids(reply) });
      const { json } = await ask({ path: "/v1/messages", headers, body: { max_tokens: 9, messages, tools } });
      const { input_tokens, cache_read_input_tokens } = json.usage;
      expect(counted.json).toEqual({ input_tokens: input_tokens + cache_read_input_tokens });
      expect(counted.json.input_tokens).toBe(engine.requests.at(-1)!.contextIds.length);
      messages.push({ role: "assistant", content: json.content }, { role: "user", content: "more" });
    }
    expect(await fixture.turns(trial)).toHaveLength(2);
  });

  test("also counts what does not fit", async () => {
    const messages = [{ role: "user", content: "#".repeat(400) }];
    const { status, json } = await ask({ path, headers, body: { messages } });
    expect(status).toBe(200);
    expect(json.input_tokens).toBeGreaterThan(300);
    const asked = await ask({ path: "/v1/messages", headers, body: { max_tokens: 9, messages } });
    expect(asked.status).toBe(400);
    expect(asked.json.error.message).toMatch(/^prompt is too long: \d+ tokens > 300 maximum$/);
  });
});

describe("bodies", () => {
  test("[8] 32 MB are read; above the limit the client gets to read the 413", async () => {
    engine.play({ ids: fixture.ids("done") });
    const padding = " ".repeat(32_000_000);
    const raw = `{"messages":[{"role":"user","content":"fix"}]${padding}}`;
    expect((await ask({ raw })).status).toBe(200);
    const large = Buffer.alloc(35 * 1024 * 1024, "x");
    expect((await ask({ raw: large })).status).toBe(413);
    expect((await ask({ raw: large, headers: { "transfer-encoding": "chunked" } })).status).toBe(413);
  });

  const fast = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
  const packers = {
    gzip: (bytes: Buffer) => gzipSync(bytes, { level: 1 }),
    deflate: (bytes: Buffer) => deflateSync(bytes, { level: 1 }),
    br: (bytes: Buffer) => brotliCompressSync(bytes, fast),
    zstd: (bytes: Buffer) => zstdCompressSync(bytes),
  };

  test.each(Object.entries(packers))("packed with %s are read", async (encoding, pack) => {
    engine.play({ ids: fixture.ids("done") });
    const raw = pack(Buffer.from(JSON.stringify({ messages: [user] })));
    expect((await ask({ raw, headers: { "content-encoding": encoding } })).status).toBe(200);
  });

  test.each(Object.entries(packers))("a %s bomb is refused by its unpacked size", async (encoding, pack) => {
    const raw = pack(Buffer.alloc(33 * 1024 * 1024));
    expect(raw.length).toBeLessThan(1024 * 1024);
    expect((await ask({ raw, headers: { "content-encoding": encoding } })).status).toBe(413);
  });

  test("a body that is not what its encoding says, and an unknown encoding, are refused by name", async () => {
    for (const encoding of ["gzip", "zstd", "rot13"]) {
      const { status, json } = await ask({ raw: "{}", headers: { "content-encoding": encoding } });
      expect([status, json.error.param]).toEqual([400, "content-encoding"]);
    }
  });

  test("a client that leaves in the middle of its body costs nothing and is no fault", async () => {
    logged = "";
    const { port } = new URL(`http://${replica.modelAddress}`);
    const socket = connect(Number(port), "127.0.0.1");
    const head = ["Host: x", `Authorization: Bearer ${token}`, "Content-Length: 100"].join("\r\n");
    socket.write(`POST /v1/chat/completions HTTP/1.1\r\n${head}\r\n\r\n{"mess`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    engine.play({ ids: fixture.ids("done") });
    expect((await ask({ body: { messages: [user] } })).status).toBe(200);
    expect(logged).not.toContain("request.failed");
  });
});

describe("connections", () => {
  test("[14] sockets stay open for more than a minute between requests", async () => {
    const { headers } = await ask({
      path: "/api/hello",
      method: "GET",
      headers: { connection: "keep-alive" },
    });
    expect(Number(/timeout=(\d+)/.exec(headers["keep-alive"] ?? "")?.[1])).toBeGreaterThan(60);
  });

  test("[15] an answer ends with a FIN, also where the request was refused half-read", async () => {
    const { port } = new URL(`http://${replica.modelAddress}`);
    const socket = connect({ port: Number(port), host: "127.0.0.1" });
    const faults: Error[] = [];
    socket.on("error", (error) => faults.push(error));
    const length = 3 * 1024 * 1024;
    const head = ["Host: x", "Connection: close", `Content-Length: ${length}`].join("\r\n");
    socket.write(`POST /v1/chat/completions HTTP/1.1\r\n${head}\r\n\r\n`);
    let answer = "";
    socket.on("data", (data) => {
      answer += data;
    });
    for (let sent = 0; sent < length; sent += 65_536) socket.write(Buffer.alloc(65_536, "x"));
    await once(socket, "end");
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(answer).toContain("invalid_api_key");
    expect(faults).toEqual([]);
    socket.destroy();
  });
});

test("[6] no token and no key is ever logged, whatever is refused", async () => {
  const secrets = [token, "sk-wrong-key-0123456789"];
  engine.play({ ids: fixture.ids("done"), failAfter: 0 });
  for (const secret of secrets)
    for (const path of ["/v1/chat/completions", `/s/${secret}/v1/messages`, `/s/${secret}/no/such`])
      await ask({ path, token: secret, headers: { "x-api-key": secret }, body: { messages: [user] } });
  expect(logged).toContain("turn.failed");
  for (const secret of secrets) expect(logged).not.toContain(secret.slice(0, 20));
});
