/**
 * Owns what every benchmark stands on: a real nats-server with the users of a deployment, the run's record, its
 * checkpoint and its first weights. Removes all of it at the end.
 */
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { KV_BUCKETS, OBJECT_BUCKETS, RunConfig, STREAMS, WeightsManifestSchema } from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology } from "@mortise/kernel";
import { initialiseWeights, openCheckpoint, readSafetensors } from "@mortise/policy";
import { type NatsFixture, startNats } from "@mortise/testkit";
import { Prose, writeBenchCheckpoint } from "./checkpoint.js";

export const RUN = "bench";
const CANARY = "model.embed_tokens.weight";

export class Stand {
  readonly nats: NatsFixture;
  readonly directory: string;
  readonly checkpoint: string;
  readonly prose: Prose;
  private readonly admin: Bus;

  private constructor(parts: {
    nats: NatsFixture;
    directory: string;
    checkpoint: string;
    prose: Prose;
    admin: Bus;
  }) {
    this.nats = parts.nats;
    this.directory = parts.directory;
    this.checkpoint = parts.checkpoint;
    this.prose = parts.prose;
    this.admin = parts.admin;
  }

  static async start(): Promise<Stand> {
    const directory = await mkdtemp(join(tmpdir(), "mortise-bench-"));
    const nats = await startNats({ withUsers: true });
    const log = createLog({ service: "bench", level: "silent" });
    const admin = await connectBus({ ...nats.identity("admin"), url: nats.url, name: "bench", log });
    await ensureTopology(admin, { streams: STREAMS, kv: KV_BUCKETS, objects: OBJECT_BUCKETS });
    const checkpoint = await writeBenchCheckpoint(directory);
    const stand = new Stand({ nats, directory, checkpoint, prose: await Prose.open(checkpoint), admin });
    await stand.publishRun();
    await stand.publishWeights();
    return stand;
  }

  async stop(): Promise<void> {
    await this.admin.close();
    await this.nats.stop();
    await rm(this.directory, { recursive: true, force: true });
  }

  private async publishRun(): Promise<void> {
    const config = RunConfig.parse({
      run: { id: RUN },
      policy: { checkpoint: this.checkpoint },
      engine: { kind: "embedded" },
      rollout: { maxTokensPerTurn: 1024 },
    });
    const record = JSON.stringify({ schema: 1, config, tasksDigest: "" });
    await (await this.admin.kv("runs")).put(RUN, new TextEncoder().encode(record));
  }

  private async publishWeights(): Promise<void> {
    const { config } = await openCheckpoint(this.checkpoint);
    const bytes = initialiseWeights(config, 1);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const object = `${RUN}/${sha256}`;
    await (await this.admin.objects("weights")).put(object, bytes);
    const canary = readSafetensors(bytes).read(CANARY).values;
    const manifest = create(WeightsManifestSchema, {
      run: RUN,
      version: 0n,
      sha256,
      size: BigInt(bytes.byteLength),
      object,
      canaryTensor: CANARY,
      canaryNorm: Math.sqrt(canary.reduce((sum, value) => sum + value * value, 0)),
    });
    await (await this.admin.kv("weights")).put(RUN, toBinary(WeightsManifestSchema, manifest));
  }
}
