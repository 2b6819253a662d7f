import { once } from "node:events";
import { create, toBinary } from "@bufbuild/protobuf";
import { credentials, Client as GrpcClient, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { type ErrorCode, MortiseError } from "@mortise/contracts";
import { service as healthService } from "grpc-health-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rpcClient } from "../src/rpc/client.js";
import { implement, RpcServer } from "../src/rpc/server.js";
import type { Client } from "../src/rpc/types.js";
import { EchoRequestSchema, ProbeService } from "./gen/probe_pb.js";

const BEARER = "a-bearer";
let server: RpcServer;
let client: Client<typeof ProbeService>;
let lastSignal: AbortSignal | undefined;
let produced = 0;

const binding = implement(ProbeService, {
  async echo(request, context) {
    lastSignal = context.signal;
    if (request.text === "budget") {
      throw new MortiseError({
        code: "MORTISE_PROVIDER_BUDGET",
        message: "10 of 10 turns.",
        retryAfterMs: 7,
        detail: { field: "turns" },
      });
    }
    if (request.text === "bug") throw new TypeError("undefined is not a function");
    if (request.text === "wait") await once(context.signal, "abort");
    return { text: request.text, remainingMs: context.remainingMs() };
  },
  async *count(request, context) {
    for (let number = 1; number <= request.until; number++) {
      if (context.signal.aborted) return;
      produced = number;
      yield { number };
      if (number % 10 === 0) await new Promise(setImmediate);
    }
    if (request.until === 3) throw new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "Gone." });
  },
});

beforeAll(async () => {
  server = await RpcServer.start({ host: "127.0.0.1", port: 0, bearer: BEARER, bindings: [binding] });
  client = rpcClient(ProbeService, server.address, { bearer: BEARER });
});
afterAll(async () => {
  client.close();
  await server.stop();
});

async function numbers(until: number): Promise<number[]> {
  const seen: number[] = [];
  for await (const { number } of client.count({ until })) seen.push(number);
  return seen;
}

test("a call carries its message and its deadline", async () => {
  const answer = await client.echo({ text: "hello" }, { deadlineMs: 5_000 });
  expect(answer.text).toBe("hello");
  expect(answer.remainingMs).toBeGreaterThan(0);
  expect(answer.remainingMs).toBeLessThanOrEqual(5_000);
});

test("a wrong or missing bearer is refused before any handler", async () => {
  lastSignal = undefined;
  const stranger = rpcClient(ProbeService, server.address, { bearer: "another" });
  await expect(stranger.echo({ text: "x" })).rejects.toMatchObject({
    code: "MORTISE_TRANSPORT_DENIED",
    cause: { code: status.UNAUTHENTICATED },
  });
  await expect(stranger.count({ until: 1 })[Symbol.asyncIterator]().next()).rejects.toMatchObject({
    code: "MORTISE_TRANSPORT_DENIED",
  });
  expect(lastSignal).toBeUndefined();
  stranger.close();
});

test("a MortiseError arrives as it was thrown", async () => {
  const error = await client.echo({ text: "budget" }).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(MortiseError);
  expect(error).toMatchObject({
    code: "MORTISE_PROVIDER_BUDGET" satisfies ErrorCode,
    disposition: "budget",
    retryAfterMs: 7,
    detail: { field: "turns" },
    cause: { code: status.RESOURCE_EXHAUSTED },
  });
  expect((error as Error).message).toBe("The session has used up a budget. 10 of 10 turns.");
});

test("any other error is internal, and its stack stays at the server", async () => {
  const error = (await client.echo({ text: "bug" }).catch((e: unknown) => e)) as MortiseError;
  expect(error).toMatchObject({ code: "MORTISE_TRANSPORT_INTERNAL", cause: { code: status.INTERNAL } });
  expect(error.message).toContain("undefined is not a function");
  expect(JSON.stringify((error.cause as ServiceError).metadata.toJSON())).not.toContain("rpc.test.ts");
});

test("a deadline ends the call at both ends", async () => {
  const call = client.echo({ text: "wait" }, { deadlineMs: 50 });
  await expect(call).rejects.toMatchObject({ code: "MORTISE_TRANSPORT_UNAVAILABLE", disposition: "retry" });
  if (!lastSignal!.aborted) await once(lastSignal!, "abort");
  expect(lastSignal!.aborted).toBe(true);
});

test("a caller that cancels ends the call at both ends", async () => {
  lastSignal = undefined;
  const abort = new AbortController();
  const call = client.echo({ text: "wait" }, { signal: abort.signal });
  const outcome = call.catch((error: unknown) => error);
  while (lastSignal === undefined) await new Promise(setImmediate);
  abort.abort();
  expect(await outcome).toMatchObject({ code: "MORTISE_TRANSPORT_CANCELLED", disposition: "cancelled" });
  if (!(lastSignal as AbortSignal).aborted) await once(lastSignal, "abort");
});

test("a stream arrives in order, and its error after what came before it", async () => {
  expect(await numbers(100)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
  const seen: number[] = [];
  const reading = (async () => {
    for await (const { number } of client.count({ until: 3 })) seen.push(number);
  })();
  await expect(reading).rejects.toMatchObject({ code: "MORTISE_PROVIDER_ENGINE", disposition: "retry" });
  expect(seen).toEqual([1, 2, 3]);
});

test("a reader that leaves ends the producer", async () => {
  for await (const { number } of client.count({ until: 1_000_000_000 })) if (number === 5) break;
  let before = -1;
  while (produced !== before) {
    before = produced;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(produced).toBeLessThan(1_000_000_000);
});

test("a server that is not there is worth a retry", async () => {
  const lost = rpcClient(ProbeService, "127.0.0.1:1", { bearer: BEARER, deadlineMs: 2_000 });
  await expect(lost.echo({ text: "x" })).rejects.toMatchObject({
    code: "MORTISE_TRANSPORT_UNAVAILABLE",
    disposition: "retry",
  });
  lost.close();
});

test("an occupied port is an operator's error that names the field", async () => {
  const start = RpcServer.start({ host: "127.0.0.1", port: server.port, bearer: BEARER, bindings: [] });
  await expect(start).rejects.toMatchObject({
    code: "MORTISE_OPERATOR_PORT_IN_USE",
    detail: { field: "rpc.port" },
  });
});

/** Generic clients: what grpcurl and a health probe would do. */
function generic(bearer: string): { client: GrpcClient; metadata: Metadata } {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${bearer}`);
  return { client: new GrpcClient(server.address, credentials.createInsecure()), metadata };
}

test("health says SERVING, to those who may ask", async () => {
  const check = healthService.Check!;
  const ask = (bearer: string) => {
    const { client: probe, metadata } = generic(bearer);
    return new Promise<unknown>((resolve, reject) => {
      probe.makeUnaryRequest(
        check.path,
        check.requestSerialize,
        check.responseDeserialize,
        { service: ProbeService.typeName },
        metadata,
        (error, answer) => (error === null ? resolve(answer) : reject(error)),
      );
    }).finally(() => probe.close());
  };
  expect(await ask(BEARER)).toEqual({ status: "SERVING" });
  await expect(ask("another")).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
});

test("reflection lists the services and describes their files", async () => {
  const path = new URL(
    import.meta.resolve("@grpc/reflection/build/proto/grpc/reflection/v1/reflection.proto"),
  );
  const definition = loadSync(path.pathname, { keepCase: true });
  const method = (
    definition["grpc.reflection.v1.ServerReflection"] as never as Record<string, typeof healthService.Check>
  ).ServerReflectionInfo!;
  const { client: probe, metadata } = generic(BEARER);
  const call = probe.makeBidiStreamRequest(
    method.path,
    method.requestSerialize,
    method.responseDeserialize,
    metadata,
  );
  const ask = async (request: object) => {
    call.write(request);
    const [answer] = await once(call, "data");
    return answer as Record<string, Record<string, unknown>>;
  };
  const listed = await ask({ list_services: "" });
  expect(JSON.stringify(listed)).toContain("probe.ProbeService");
  const described = await ask({ file_containing_symbol: "probe.ProbeService" });
  const files = described.file_descriptor_response!.file_descriptor_proto as Buffer[];
  expect(files.some((file) => file.includes("ProbeService"))).toBe(true);
  call.end();
  probe.close();
});

test("a message already made is sent as it is", async () => {
  const message = create(EchoRequestSchema, { text: "made" });
  expect(toBinary(EchoRequestSchema, message).length).toBeGreaterThan(0);
  expect((await client.echo(message)).text).toBe("made");
});
