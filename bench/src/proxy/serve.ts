/**
 * Owns the program of a server under measurement; server.ts starts it. All kinds play the same replies from the
 * same scripted engine, so that they differ in what they do between a request and the engine.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { FinishReason, SiteConfig } from "@mortise/contracts";
import { chatDialect } from "@mortise/dialects";
import { type Bus, connectBus, createLog, Metrics, RpcServer, systemClock } from "@mortise/kernel";
import { type Checkpoint, openCheckpoint, Tokenizer } from "@mortise/policy";
import { ScriptedEngine, startProxy } from "@mortise/proxy";
import { Renderer, ReplyParser, toolFormatOf } from "@mortise/rendering";
import { cannedStream, type ReplyPlan, scriptedReply } from "./replies.js";
import type { ServeOptions, ServerMessage } from "./server.js";

const IDLE_SOCKET_MS = 600_000;
const NOTHING = new Int32Array();
const options = JSON.parse(process.argv[2]!) as ServeOptions;
const checkpoint = await openCheckpoint(options.checkpoint);
const isProxy = options.kind === "proxy" || options.kind === "unjournalled";
const stop = isProxy ? await serveProxy() : await serveBare();

process.on("message", ({ collect }: { collect: boolean }) => {
  if (collect) for (let n = 0; n < 3; n++) globalThis.gc!();
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed, arrayBuffers } = process.memoryUsage();
  const usage = {
    cpuMs: (user + system) / 1000,
    rssBytes: rss,
    heapBytes: heapUsed,
    arrayBytes: arrayBuffers,
  };
  tell({ kind: "usage", usage });
});
process.once("SIGTERM", () => void stop().then(() => process.exit(0)));
process.once("disconnect", () => process.exit(1));

function tell(message: ServerMessage): void {
  process.send!(message);
}

function scriptedEngine({ reply }: ServeOptions, from: Checkpoint): ScriptedEngine {
  const said = scriptedReply(from, reply);
  return new ScriptedEngine({ choose: () => said });
}

async function serveProxy(): Promise<() => Promise<void>> {
  const { natsUrl, identity, directory, kind } = options;
  const log = createLog({ service: "proxy", level: "error" });
  const bus = await connectBus({ ...identity, url: natsUrl, name: "proxy", log } as Parameters<
    typeof connectBus
  >[0]);
  const site = SiteConfig.parse({
    nats: { url: natsUrl },
    identity: { directory },
    state: { directory },
    tasks: { directory },
  });
  const running = await startProxy(
    {
      name: "proxy",
      instance: `${kind}${process.pid}`,
      site,
      bus: kind === "unjournalled" ? withoutJournal(bus) : bus,
      log,
      clock: systemClock,
      metrics: new Metrics("proxy"),
      bearer: identity.bearer,
      stateDirectory: directory,
      amendPresence: async () => {},
      signal: new AbortController().signal,
      fail: (error) => {
        throw error;
      },
    },
    () => scriptedEngine(options, checkpoint),
  );
  const { bearer } = identity;
  const server = await RpcServer.start({ host: "127.0.0.1", port: 0, bearer, bindings: running.bindings! });
  tell({ kind: "ready", address: running.presence!.modelAddress!, rpcAddress: server.address });
  return async () => {
    await running.drain();
    await server.stop();
    await bus.close();
  };
}

/** Turns are acknowledged at once and stored nowhere: what is left is the proxy without the journal's price. */
function withoutJournal(bus: Bus): Bus {
  let sequence = 0;
  const publish: Bus["publish"] = async (message) =>
    message.subject.includes(".capture.") ? { sequence: ++sequence, duplicate: false } : bus.publish(message);
  return new Proxy(bus, {
    get(target, name) {
      if (name === "publish") return publish;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

async function serveBare(): Promise<() => Promise<void>> {
  const engine = scriptedEngine(options, checkpoint);
  await engine.loadWeights({ version: 0, sha256: "none" });
  const serve = options.kind === "floor" ? floor(engine, options.reply) : naive(engine);
  // Pools of clients keep sockets longer than the default: one that is closed under them fails a request.
  const server = createServer({ keepAliveTimeout: IDLE_SOCKET_MS }, (request, response) => {
    void serve(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  tell({ kind: "ready", address: `127.0.0.1:${port}`, rpcAddress: undefined });
  return async () => server.closeAllConnections();
}

type Serve = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

function floor(engine: ScriptedEngine, plan: ReplyPlan): Serve {
  const canned = cannedStream(plan);
  return async (request, response) => {
    await bodyOf(request);
    openStream(response);
    response.write(canned.opening);
    let ordinal = 0;
    await engine.generate({
      ...generation(NOTHING),
      onIds: (ids) => void response.write(ids.map(() => canned.perId(ordinal++)).join("")),
    });
    response.end(canned.ending);
  };
}

/** What a server without sessions does: everything of the history, at every turn, with the library as it is. */
function naive(engine: ScriptedEngine): Serve {
  const { chatTemplate, eosIds: stopIds, tokenizerFiles } = checkpoint;
  const tokenizer = new Tokenizer(tokenizerFiles, { remembersWords: options.kind === "naive-words" });
  const renderer = new Renderer({ chatTemplate, tokenizer, eosIds: stopIds });
  const { tokenizerConfigJson } = tokenizerFiles;
  const format = toolFormatOf({ tokenizerConfigJson, tokenizer, renderer, stopIds });
  let turns = 0;
  return async (incoming, response) => {
    const request = chatDialect.read(JSON.parse(await bodyOf(incoming)));
    const { tools } = request.conversation;
    const { ids: contextIds } = renderer.renderWhole(request.conversation);
    const turn = `n${turns++}`;
    const writer = chatDialect.writer({ turn, model: "policy", createdMs: Date.now() }, request);
    const parser = new ReplyParser({ tokenizer, format, tools, stopIds });
    const identify = (parts: ReturnType<ReplyParser["push"]>) =>
      parts.map((part) => (part.kind === "call-start" ? { ...part, id: `call_${turn}_${part.call}` } : part));
    openStream(response);
    response.write(writer.opening(contextIds.length));
    const { ids } = await engine.generate({
      ...generation(contextIds),
      onIds: (some) => void response.write(writer.parts(identify(parser.push(some)))),
    });
    const rest = writer.parts(identify(parser.end()));
    response.end(
      rest +
        writer.ending({
          finish: FinishReason.STOP,
          promptTokens: contextIds.length,
          cachedTokens: 0,
          completionTokens: ids.length,
          reasoningTokens: 0,
        }),
    );
  };
}

function generation(contextIds: Int32Array) {
  return {
    affinity: "bench",
    contextIds,
    maxTokens: 1024,
    temperature: 1,
    stopIds: checkpoint.eosIds,
    rngKey: "bench",
    turnIndex: 0,
    signal: new AbortController().signal,
  };
}

function openStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
