/**
 * A proxy on a real nats-server, with the permissions of its user, a real checkpoint directory, real sockets
 * and real gRPC. `restart` leaves the running replica as a crash would (it is never told) and starts another
 * on the same bus: nothing is handed over.
 */
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  type CaptureRecord,
  CaptureRecordSchema,
  KV_BUCKETS,
  OBJECT_BUCKETS,
  ProxyService,
  RunConfig,
  SiteConfig,
  STREAMS,
  subject,
  WeightsManifestSchema,
} from "@mortise/contracts";
import {
  type Bus,
  type Client,
  type Clock,
  connectBus,
  createLog,
  ensureTopology,
  type Log,
  Metrics,
  RpcServer,
  type Running,
  rpcClient,
  systemClock,
} from "@mortise/kernel";
import {
  type DecoderConfig,
  initialiseWeights,
  openCheckpoint,
  readSafetensors,
  type Tokenizer,
  tokenizerFiles,
  trainTokenizer,
  writeCheckpoint,
} from "@mortise/policy";
import { type NatsFixture, startNats } from "@mortise/testkit";
import { DEMO_SPECIAL_TOKENS, demoChatTemplate } from "../../../packages/tasks/src/demo/chat-template.js";
import { type MakeEngine, startProxy } from "../src/service.js";

export const RUN = "r1";
const BEARER = "test-bearer";
const CANARY = "model.embed_tokens.weight";

export interface FixtureOptions {
  readonly chatTemplate?: string;
  readonly maxPositions?: number;
  readonly maxTokensPerTurn?: number;
  /** Where the decoder is to be another than the smallest that works. */
  readonly decoder?: Partial<DecoderConfig>;
  /** The run's `engine`; only a process reads it, `start` is given its engine. */
  readonly engine?: object;
  /** The run's `run.mode`. */
  readonly mode?: "training" | "evaluation";
}

export interface ReplicaOptions {
  readonly log?: Log;
  /** The machine's unless a test wants to own time. */
  readonly clock?: Clock;
  /** Fields of the site's `proxy`. */
  readonly site?: object;
}

export interface Replica {
  readonly running: Running;
  readonly rpc: Client<typeof ProxyService>;
  readonly modelAddress: string;
  readonly metrics: Metrics;
}

export class ProxyFixture {
  readonly nats: NatsFixture;
  readonly admin: Bus;
  readonly tokenizer: Tokenizer;
  readonly config: DecoderConfig;
  readonly checkpoint: string;
  private readonly directory: string;
  private readonly ends: (() => Promise<void>)[] = [];

  private constructor(parts: {
    nats: NatsFixture;
    admin: Bus;
    tokenizer: Tokenizer;
    config: DecoderConfig;
    checkpoint: string;
    directory: string;
  }) {
    this.nats = parts.nats;
    this.admin = parts.admin;
    this.tokenizer = parts.tokenizer;
    this.config = parts.config;
    this.checkpoint = parts.checkpoint;
    this.directory = parts.directory;
  }

  static async create(options: FixtureOptions = {}): Promise<ProxyFixture> {
    const nats = await startNats({ withUsers: true });
    const directory = await mkdtemp(join(tmpdir(), "mortise-proxy-"));
    const admin = await connectBus({ ...nats.identity("admin"), url: nats.url, name: "test", log: quiet() });
    await ensureTopology(admin, { streams: STREAMS, kv: KV_BUCKETS, objects: OBJECT_BUCKETS });
    const checkpoint = await writeTinyCheckpoint(directory, options);
    const { tokenizer, config } = await openCheckpoint(checkpoint);
    const run = RunConfig.parse({
      run: { id: RUN, mode: options.mode ?? "training" },
      policy: { checkpoint },
      ...(options.engine && { engine: options.engine }),
      rollout: { maxTokensPerTurn: options.maxTokensPerTurn ?? 64 },
    });
    const runs = await admin.kv("runs");
    await runs.put(
      RUN,
      new TextEncoder().encode(JSON.stringify({ schema: 1, config: run, tasksDigest: "" })),
    );
    return new ProxyFixture({ nats, admin, tokenizer, config, checkpoint, directory });
  }

  /** Publishes a policy version as the trainer does. Returns its safetensors. */
  async publishWeights(version: number, damage: { sha256?: string } = {}): Promise<Uint8Array> {
    const bytes = initialiseWeights(this.config, version + 1);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const object = `${RUN}/${sha256}`;
    await (await this.admin.objects("weights")).put(object, bytes);
    const values = readSafetensors(bytes).read(CANARY).values;
    const manifest = create(WeightsManifestSchema, {
      run: RUN,
      version: BigInt(version),
      sha256: damage.sha256 ?? sha256,
      size: BigInt(bytes.byteLength),
      object,
      canaryTensor: CANARY,
      canaryNorm: Math.sqrt(values.reduce((sum, value) => sum + value * value, 0)),
    });
    const kv = await this.admin.kv("weights");
    await kv.put(RUN, toBinary(WeightsManifestSchema, manifest));
    return bytes;
  }

  /** Starts a replica and waits until it serves the run. */
  async start(makeEngine: MakeEngine, options: ReplicaOptions = {}): Promise<Replica> {
    const log = options.log ?? quiet();
    const identity = this.nats.identity("proxy");
    const bus = await connectBus({ ...identity, url: this.nats.url, name: "proxy", log });
    const metrics = new Metrics("proxy");
    const site = SiteConfig.parse({
      nats: { url: this.nats.url },
      identity: { directory: this.directory },
      state: { directory: this.directory },
      tasks: { directory: this.directory },
      ...(options.site && { proxy: options.site }),
    });
    const running = await startProxy(
      {
        name: "proxy",
        instance: `p${this.ends.length}`,
        site,
        bus,
        log,
        clock: options.clock ?? systemClock,
        metrics,
        bearer: BEARER,
        stateDirectory: this.directory,
        signal: new AbortController().signal,
        fail: (error) => {
          throw error;
        },
      },
      makeEngine,
    );
    const server = await RpcServer.start({
      host: "127.0.0.1",
      port: 0,
      bearer: BEARER,
      bindings: running.bindings!,
    });
    const rpc = rpcClient(ProxyService, server.address, { bearer: BEARER });
    this.ends.push(async () => {
      rpc.close();
      await running.drain();
      await server.stop();
      await bus.close();
    });
    return { running, rpc, modelAddress: running.presence!.modelAddress!, metrics };
  }

  /** The ids of a text, with the end-of-turn token unless told otherwise. */
  ids(text: string, options: { ends?: boolean } = {}): number[] {
    return [...this.tokenizer.encode(options.ends === false ? text : `${text}<|im_end|>`)];
  }

  /** Everything recorded for a trial, in order. */
  async captures(trial: string): Promise<CaptureRecord[]> {
    const records: CaptureRecord[] = [];
    const follow = await this.admin.follow({
      stream: "CAPTURES",
      filters: [subject.capture(RUN, trial)],
      from: "first",
      schema: CaptureRecordSchema,
      onMessage: (record) => void records.push(record),
    });
    await follow.caughtUp;
    await follow.stop();
    return records;
  }

  async turns(trial: string) {
    return (await this.captures(trial)).flatMap((one) =>
      one.record.case === "turn" ? [one.record.value] : [],
    );
  }

  async stop(): Promise<void> {
    for (const end of this.ends.reverse()) await end();
    await this.admin.close();
    await this.nats.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Opens a session, asking again while the engine has no weights, as the scheduler does. */
export async function openSession(
  replica: Pick<Replica, "rpc">,
  trial: string,
  over: object = {},
): Promise<string> {
  for (;;) {
    try {
      return (await replica.rpc.openSession({ run: RUN, trial, rngKey: `1/task/${trial}`, ...over })).token;
    } catch (error) {
      if ((error as { disposition?: string }).disposition !== "retry") throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

async function writeTinyCheckpoint(directory: string, options: FixtureOptions): Promise<string> {
  const trained = trainTokenizer(["user assistant tool edit ok done x=>y fix the sum"], {
    maxMerges: 20,
    specialTokens: DEMO_SPECIAL_TOKENS,
  });
  const maxPositions = options.maxPositions ?? 512;
  const files = tokenizerFiles(trained, {
    eosToken: "<|im_end|>",
    padToken: "<|endoftext|>",
    chatTemplate: options.chatTemplate ?? demoChatTemplate,
    maxLength: maxPositions,
  });
  const config: DecoderConfig = {
    modelType: "qwen3",
    vocabSize: trained.vocabSize,
    hiddenSize: 16,
    intermediateSize: 32,
    layers: 2,
    heads: 2,
    kvHeads: 1,
    headDim: 8,
    rmsNormEps: 1e-6,
    ropeTheta: 10_000,
    rotaryDim: 8,
    maxPositions,
    tieWordEmbeddings: true,
    qkvBias: false,
    qkNorm: true,
    ...options.decoder,
  };
  const path = join(directory, "policy");
  await writeCheckpoint(path, { config, weights: initialiseWeights(config, 1), tokenizerFiles: files });
  return path;
}

function quiet() {
  return createLog({ service: "proxy", level: process.env.TEST_LOG ?? "silent" });
}
