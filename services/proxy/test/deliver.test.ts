/** What one HTTP connection gets and what is said of it, on a real socket with time in the test's hands. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { connect } from "node:net";
import { Delivery, FinishReason, MortiseError } from "@mortise/contracts";
import { chatDialect } from "@mortise/dialects";
import { ManualClock } from "@mortise/kernel";
import { afterEach, beforeEach, expect, test } from "vitest";
import { deliverStream, deliverWhole } from "../src/front/deliver.js";
import { Reply } from "../src/session/reply.js";
import { call, events, joinStream, until } from "./http-client.js";

const END = {
  finish: FinishReason.STOP,
  promptTokens: 1,
  cachedTokens: 0,
  completionTokens: 1,
  reasoningTokens: 0,
};

let server: Server;
let clock: ManualClock;
let reply: Reply;
let address: string;

beforeEach(async () => {
  clock = new ManualClock();
  reply = new Reply("t", 1);
  server = createServer(({ url }, response) => {
    const request = chatDialect.read({ messages: [{ role: "user", content: "x" }] });
    const writer = chatDialect.writer({ turn: "t", model: "m", createdMs: 0 }, request);
    const connection = reply.connect();
    const rest = { dialect: chatDialect, requestId: "req_1", tokens: () => undefined };
    const deliver = url === "/whole" ? deliverWhole : deliverStream;
    void deliver({ response, connection, writer, ...rest }, clock);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

test("silence is filled with real events, which carry no content", async () => {
  const open = call(address, {});
  await open.opened;
  await until(() => events(open.received()).length === 1);
  clock.advance(10_000);
  await until(() => events(open.received()).length === 2);
  clock.advance(10_000);
  await until(() => events(open.received()).length === 3);
  reply.say([{ kind: "text", text: "done" }]);
  reply.end(END);
  expect(joinStream((await open.done).text)).toMatchObject({ content: "done", isDone: true });
  expect(reply.delivery).toBe(Delivery.DELIVERED);
});

test("a client that takes nothing is cut, and its reply can be asked for again", async () => {
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, "127.0.0.1");
  socket.pause();
  socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await until(() => reply.delivery === Delivery.UNDECIDED);
  const text = "x".repeat(1024 * 1024);
  for (let k = 0; k < 64; k++) reply.say([{ kind: "text", text }]);
  await until(() => reply.bytesDelivered > 64 * 1024 * 1024);
  reply.end(END);
  expect(reply.delivery).toBe(Delivery.UNDECIDED);
  clock.advance(120_000);
  await until(() => reply.isOrphaned);
  socket.destroy();
});

test("a client that does not take a whole reply is cut too", async () => {
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, "127.0.0.1");
  socket.pause();
  socket.write("GET /whole HTTP/1.1\r\nhost: x\r\n\r\n");
  reply.say([{ kind: "text", text: "x".repeat(64 * 1024 * 1024) }]);
  reply.end(END);
  await until(() => reply.bytesDelivered > 64 * 1024 * 1024);
  expect(reply.delivery).toBe(Delivery.UNDECIDED);
  clock.advance(120_000);
  await until(() => reply.isOrphaned);
  socket.destroy();
});

test("an end that cannot be stored fails in a minute on this connection, and the turn may be asked for again", async () => {
  const open = call(address, {});
  await open.opened;
  reply.say([{ kind: "text", text: "done" }]);
  reply.close();
  await until(() => joinStream(open.received()).content === "done");
  clock.advance(59_999);
  clock.advance(1);
  expect(joinStream((await open.done).text)).toMatchObject({
    isDone: false,
    error: { code: "temporarily_unavailable" },
  });
  expect(reply.isOrphaned).toBe(true);
  const retry = call(address, {});
  await retry.opened;
  reply.end(END);
  expect(joinStream((await retry.done).text)).toMatchObject({ content: "done", isDone: true });
});

test("how long sampling takes is not counted against the journal", async () => {
  const open = call(address, {});
  await open.opened;
  clock.advance(3_600_000);
  reply.say([{ kind: "text", text: "done" }]);
  reply.end(END);
  expect(joinStream((await open.done).text)).toMatchObject({ content: "done", isDone: true });
});

test("a reply that fails after it began ends with an error event and was not delivered", async () => {
  const open = call(address, {});
  await open.opened;
  reply.say([{ kind: "text", text: "do" }]);
  reply.fail(new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "secret detail" }));
  const { text } = await open.done;
  expect(joinStream(text)).toMatchObject({
    content: "do",
    isDone: false,
    error: { code: "temporarily_unavailable" },
  });
  expect(text).not.toContain("secret");
  expect(reply.delivery).toBe(Delivery.ABANDONED);
  expect(reply.isOrphaned).toBe(true);
});
