/** The wire between harness and proxy: transparent until a case asks for a fault. */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Relay } from "../../src/conformance/relay.js";

let server: Server;
let relay: Relay;
/** Replies under way at the far end. */
let replies: ServerResponse[];

beforeEach(async () => {
  replies = [];
  server = createServer((request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "x-path": request.url ?? "" });
    response.write("data: one\n\n");
    replies.push(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  relay = await Relay.start(`127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterEach(async () => {
  await relay.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const post = (path: string) => fetch(`${relay.origin}${path}`, { method: "POST", body: "{}" });

test("what comes passes at once, and is written down", async () => {
  const answer = await post("/v1/messages?beta=true");
  expect(answer.headers.get("x-path")).toBe("/v1/messages?beta=true");
  const reader = answer.body!.getReader();
  const first = await reader.read();
  expect(new TextDecoder().decode(first.value)).toBe("data: one\n\n");
  replies[0]!.end("data: two\n\n");
  expect(new TextDecoder().decode((await reader.read()).value)).toBe("data: two\n\n");
  expect(relay.modelCalls).toEqual([
    { method: "POST", path: "/v1/messages", status: 200, isStream: true, wasCut: false },
  ]);
});

test("a refusal stands in for the next model calls only", async () => {
  relay.refuseNext({ status: 529, headers: { "retry-after": "1" }, body: '{"type":"error"}' });
  const probe = post("/v1/count");
  const refused = await post("/v1/chat/completions");
  expect([refused.status, refused.headers.get("retry-after"), await refused.text()]).toEqual([
    529,
    "1",
    '{"type":"error"}',
  ]);
  expect((await probe).status).toBe(200);
  expect((await post("/v1/chat/completions")).status).toBe(200);
});

test("a cut ends what is under way, at both ends", async () => {
  const answer = await post("/v1/responses");
  const read = answer.text();
  const failed = expect(read).rejects.toThrow();
  await relay.cut(20);
  await failed;
  await expect.poll(() => replies[0]!.closed).toBe(true);
  expect(replies[0]!.writableEnded).toBe(false);
  expect(relay.modelCalls[0]).toMatchObject({ wasCut: true });
});
