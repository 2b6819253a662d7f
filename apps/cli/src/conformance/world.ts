/**
 * Owns the surroundings of a conformance run: a real nats-server with the users of a deployment, a real proxy on
 * it, and a run a case with its own window and script. Everything lies in one temporary directory.
 * Does not run harnesses.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  type CaptureRecord,
  CaptureRecordSchema,
  ProxyService,
  RunConfig,
  type RunRecord,
  type SessionSealed,
  SiteConfig,
  subject,
  type Turn,
  WeightsManifestSchema,
} from "@mortise/contracts";
import {
  type Bus,
  type Client,
  connectBus,
  createLog,
  type Log,
  Metrics,
  RpcServer,
  type Running,
  rpcClient,
  systemClock,
} from "@mortise/kernel";
import { openCheckpoint, readSafetensors, type Tokenizer } from "@mortise/policy";
import { type ChooseReply, ScriptedEngine, startProxy } from "@mortise/proxy";
import { readIdentity } from "../provision/identity.js";
import { provisionNatsServer } from "../provision/nats-server/provision.js";
import { runPaths } from "../quickstart/run-directory.js";
import { LocalCluster } from "../site/processes/local-cluster.js";
import { projectPaths } from "../site/project-paths.js";
import { writePolicy } from "./policy-files.js";

const CANARY = "model.embed_tokens.weight";
/** The engine has no weights for a moment after a run is opened. */
const LOOK_INTERVAL_MS = 20;
/** Above any reply of a script: only scripts end replies. */
const MAX_TOKENS_PER_TURN = 8_192;

export interface OpenTrial {
  readonly run: string;
  readonly trial: string;
  readonly token: string;
  /** `host:port` of the model API. */
  readonly modelAddress: string;
  readonly tokenizer: Tokenizer;
  readonly engine: ScriptedEngine;
}

export class ConformanceWorld {
  private readonly directory: string;
  private readonly cluster: LocalCluster;
  private readonly admin: Bus;
  private readonly proxyBus: Bus;
  private readonly running: Running;
  private readonly server: RpcServer;
  private readonly rpc: Client<typeof ProxyService>;
  private readonly engines: Map<string, ScriptedEngine>;
  private ordinal = 0;

  private constructor(parts: {
    directory: string;
    cluster: LocalCluster;
    admin: Bus;
    proxyBus: Bus;
    running: Running;
    server: RpcServer;
    rpc: Client<typeof ProxyService>;
    engines: Map<string, ScriptedEngine>;
  }) {
    this.directory = parts.directory;
    this.cluster = parts.cluster;
    this.admin = parts.admin;
    this.proxyBus = parts.proxyBus;
    this.running = parts.running;
    this.server = parts.server;
    this.rpc = parts.rpc;
    this.engines = parts.engines;
  }

  static async start(directory: string, note: (line: string) => void): Promise<ConformanceWorld> {
    const project = projectPaths();
    // A server of its own: what a conformance run records belongs on nobody's bus.
    const environment = { PATH: process.env.PATH };
    const nats = await provisionNatsServer({ cacheDirectory: project.cache, environment, onProgress: note });
    const paths = runPaths({ ...project, runs: directory }, "bus");
    const cluster = new LocalCluster({ project, paths, nats, note });
    await cluster.startBus([]);
    const log = createLog({ service: "conformance", level: process.env.MORTISE_LOG_LEVEL ?? "silent" });
    const connect = async (user: "admin" | "proxy") =>
      connectBus({ ...(await readIdentity(paths.identity, user)), url: cluster.natsUrl, name: user, log });
    const admin = await connect("admin");
    const proxyBus = await connect("proxy");
    const engines = new Map<string, ScriptedEngine>();
    const { bearer } = cluster;
    const running = await startProxyHere({ proxyBus, directory, bearer, log, engines, url: cluster.natsUrl });
    const server = await RpcServer.start({
      host: "127.0.0.1",
      port: 0,
      bearer,
      bindings: running.bindings!,
    });
    const rpc = rpcClient(ProxyService, server.address, { bearer });
    return new ConformanceWorld({ directory, cluster, admin, proxyBus, running, server, rpc, engines });
  }

  /** Opens a run of its own for one trial, with a window of `maxPositions` tokens, and the trial's session. */
  async open(maxPositions: number, chooser: (tokenizer: Tokenizer) => ChooseReply): Promise<OpenTrial> {
    const run = `conformance-${this.ordinal++}`;
    const { checkpoint, weights } = await writePolicy(this.directory, maxPositions);
    const { tokenizer } = await openCheckpoint(checkpoint);
    const engine = new ScriptedEngine({ id: run, choose: chooser(tokenizer) });
    this.engines.set(run, engine);
    const config = RunConfig.parse({
      run: { id: run },
      policy: { checkpoint },
      rollout: { maxTokensPerTurn: MAX_TOKENS_PER_TURN },
    });
    const record: RunRecord = { schema: 1, config, tasksDigest: "" };
    await (await this.admin.kv("runs")).put(run, new TextEncoder().encode(JSON.stringify(record)));
    await this.publishWeights(run, weights);
    const trial = `${run}-trial`;
    return {
      run,
      trial,
      token: await this.openSession(run, trial),
      modelAddress: this.running.presence!.modelAddress!,
      tokenizer,
      engine,
    };
  }

  /** Seals the trial's session and reads its record back from the stream. */
  async close({ run, trial }: OpenTrial): Promise<{ turns: Turn[]; seal: SessionSealed }> {
    const { seal } = await this.rpc.sealSession({ run, trial });
    const records: CaptureRecord[] = [];
    const follow = await this.admin.follow({
      stream: "CAPTURES",
      filters: [subject.capture(run, trial)],
      from: "first",
      schema: CaptureRecordSchema,
      onMessage: (record) => void records.push(record),
    });
    await follow.caughtUp;
    await follow.stop();
    const turns = records.flatMap(({ record }) => (record.case === "turn" ? [record.value] : []));
    return { turns: turns.sort((a, b) => a.index - b.index), seal: seal! };
  }

  async stop(): Promise<void> {
    this.rpc.close();
    await this.running.drain();
    await this.server.stop();
    await this.proxyBus.close();
    await this.admin.close();
    await this.cluster.stop();
  }

  private async publishWeights(run: string, bytes: Uint8Array): Promise<void> {
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const object = `${run}/${sha256}`;
    await (await this.admin.objects("weights")).put(object, bytes);
    const canary = readSafetensors(bytes).read(CANARY).values;
    const manifest = create(WeightsManifestSchema, {
      run,
      version: 0n,
      sha256,
      size: BigInt(bytes.byteLength),
      object,
      canaryTensor: CANARY,
      canaryNorm: Math.sqrt(canary.reduce((sum, value) => sum + value * value, 0)),
    });
    await (await this.admin.kv("weights")).put(run, toBinary(WeightsManifestSchema, manifest));
  }

  /** Asks again while the engine has no weights, as the scheduler does. */
  private async openSession(run: string, trial: string): Promise<string> {
    for (;;) {
      try {
        return (await this.rpc.openSession({ run, trial, rngKey: trial })).token;
      } catch (error) {
        if ((error as { disposition?: string }).disposition !== "retry") throw error;
        await new Promise((resolve) => setTimeout(resolve, LOOK_INTERVAL_MS));
      }
    }
  }
}

function startProxyHere(parts: {
  proxyBus: Bus;
  directory: string;
  bearer: string;
  log: Log;
  engines: ReadonlyMap<string, ScriptedEngine>;
  url: string;
}): Promise<Running> {
  const { directory } = parts;
  const site = SiteConfig.parse({
    nats: { url: parts.url },
    identity: { directory: join(directory, "bus", "identity") },
    state: { directory },
    tasks: { directory },
  });
  return startProxy(
    {
      name: "proxy",
      instance: "conformance",
      site,
      bus: parts.proxyBus,
      log: parts.log,
      clock: systemClock,
      metrics: new Metrics("proxy"),
      bearer: parts.bearer,
      stateDirectory: directory,
      signal: new AbortController().signal,
      amendPresence: async () => {},
      fail: (error) => {
        throw error;
      },
    },
    (run) => parts.engines.get(run)!,
  );
}
