/** Publication and recovery on a real nats-server: the KV wins, whatever is on disk (DESIGN §6). */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KV_BUCKETS, OBJECT_BUCKETS, STREAMS, WeightsRecordSchema } from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology } from "@mortise/kernel";
import { initialiseWeights } from "@mortise/policy";
import { type NatsFixture, startNats } from "@mortise/testkit";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Checkpoint, CheckpointStore } from "../src/commit/checkpoint-store.js";
import { canaryOf, digestOf, Publication } from "../src/commit/publication.js";
import { recover } from "../src/commit/recover.js";
import { Receipts } from "../src/receipts.js";
import { tinyConfig } from "./support/tiny-policy.js";

let nats: NatsFixture;
let bus: Bus;
let directory: string;
let store: CheckpointStore;
let run: string;
let runs = 0;

const log = createLog({ service: "test", level: "silent" });

beforeAll(async () => {
  nats = await startNats({ withUsers: true });
  const connect = (user: "admin" | "trainer") =>
    connectBus({ url: nats.url, user, password: nats.identity(user).password, name: "test", log });
  const admin = await connect("admin");
  const streams = STREAMS.map((stream) => ({ ...stream, maxBytes: 16 * 1024 * 1024 }));
  await ensureTopology(admin, { streams, kv: KV_BUCKETS, objects: OBJECT_BUCKETS });
  await admin.close();
  bus = await connect("trainer");
});
afterAll(async () => {
  await bus.close();
  await nats.stop();
});
beforeEach(async () => {
  run = `r${runs++}`;
  directory = await mkdtemp(join(tmpdir(), "mortise-recover-"));
  const policy = join(directory, "policy");
  await mkdir(policy);
  store = new CheckpointStore(join(directory, "checkpoints"), policy);
  await store.prepare();
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const config = tinyConfig(30);

function checkpoint(version: number, options: { seed?: number; base?: Checkpoint } = {}): Checkpoint {
  const weights = initialiseWeights(config, options.seed ?? version + 1);
  return {
    facts: {
      format: 1,
      run,
      version,
      sha256: digestOf(weights),
      baseSha256: options.base?.facts.sha256 ?? null,
      cursor: version,
      updates: version,
      groups: [],
      seed: 1,
      fence: 1,
    },
    weights,
    optimizer: new Uint8Array(),
    record: new Uint8Array(),
  };
}

function publication(fence = 5, onPhase = () => undefined) {
  return new Publication({ bus, run, checkpoint: "policy", fence, onPhase });
}

async function stored(...checkpoints: Checkpoint[]): Promise<void> {
  for (const one of checkpoints) await store.store(await store.stage(one), one.facts.version);
}

describe("publication", () => {
  test("the manifest names bytes that are there, and a canary that is theirs", async () => {
    const first = checkpoint(0);
    const { manifest } = await publication().publish(first, undefined);
    expect(manifest).toMatchObject({
      run,
      version: 0n,
      sha256: first.facts.sha256,
      fence: 5n,
      checkpoint: "policy",
    });
    const bytes = await (await bus.objects("weights")).get(manifest.object);
    expect(digestOf(bytes)).toBe(manifest.sha256);
    expect(canaryOf(bytes)).toEqual({
      tensor: "model.layers.1.mlp.down_proj.weight",
      norm: manifest.canaryNorm,
    });
  });

  test("of two trainers that follow the same version one is fenced, and its version is never current", async () => {
    const base = checkpoint(0);
    const from = await publication().publish(base, undefined);
    await publication(6).publish(checkpoint(1, { base, seed: 20 }), from);
    const late = publication(6).publish(checkpoint(1, { base, seed: 30 }), from);
    await expect(late).rejects.toMatchObject({ code: "MORTISE_TRANSPORT_FENCED" });
    expect((await publication().current())!.manifest.sha256).toBe(checkpoint(1, { seed: 20 }).facts.sha256);
  });

  test("a trainer with an older fence than the published one writes nothing", async () => {
    const from = await publication(9).publish(checkpoint(0), undefined);
    const older = publication(8).publish(checkpoint(1), from);
    await expect(older).rejects.toMatchObject({ code: "MORTISE_TRANSPORT_FENCED" });
    expect((await publication().current())!.revision).toBe(from.revision);
  });

  test("a version is announced once, however often it is asked for", async () => {
    const current = await publication().publish(checkpoint(0), undefined);
    await publication().announce(current);
    await publication().announce(current);
    const found = await bus.last("WEIGHTS", `mortise.v1.weights.${run}.0`, WeightsRecordSchema);
    await publication().announce(current);
    const again = await bus.last("WEIGHTS", `mortise.v1.weights.${run}.0`, WeightsRecordSchema);
    expect(again!.sequence).toBe(found!.sequence);
  });
});

describe("recovery", () => {
  test("a new run has nothing to recover", async () => {
    expect(await recover(store, publication())).toBeUndefined();
  });

  test("a stored version 0 that was never published is published", async () => {
    await stored(checkpoint(0));
    expect((await recover(store, publication()))!.current.manifest.version).toBe(0n);
    expect((await publication().current())!.manifest.version).toBe(0n);
  });

  test("a stored successor of the current version is published", async () => {
    const zero = checkpoint(0);
    const one = checkpoint(1, { base: zero });
    await stored(zero, one);
    await publication().publish(zero, undefined);
    const recovered = (await recover(store, publication()))!;
    expect(recovered.checkpoint.facts).toEqual(one.facts);
    expect((await publication().current())!.manifest.sha256).toBe(one.facts.sha256);
  });

  test("a successor that was computed from other weights is removed", async () => {
    const zero = checkpoint(0);
    await stored(zero, checkpoint(1, { base: checkpoint(0, { seed: 77 }) }));
    await publication().publish(zero, undefined);
    expect((await recover(store, publication()))!.checkpoint.facts.version).toBe(0);
    expect(await store.versions()).toEqual([0]);
  });

  test("the published version must be on disk, with the published weights", async () => {
    await publication().publish(checkpoint(0), undefined);
    await expect(recover(store, publication())).rejects.toMatchObject({ code: "MORTISE_TRAINER_CHECKPOINT" });
    await stored(checkpoint(0, { seed: 50 }));
    await expect(recover(store, publication())).rejects.toMatchObject({ code: "MORTISE_TRAINER_CHECKPOINT" });
  });

  test("trained checkpoints without a published version are refused, not published as a beginning", async () => {
    await stored(checkpoint(3));
    await expect(recover(store, publication())).rejects.toMatchObject({ code: "MORTISE_TRAINER_CHECKPOINT" });
    expect(await publication().current()).toBeUndefined();
  });
});

describe("receipts", () => {
  test("count engines by version, and expose an engine that acknowledges other weights", async () => {
    const { manifest } = await publication().publish(checkpoint(0), undefined);
    await publication().announce({ manifest, revision: 0 });
    const proxy = await connectBus({
      url: nats.url,
      user: "proxy",
      password: nats.identity("proxy").password,
      name: "test",
      log,
    });
    const acknowledge = (engine: string, canaryNorm: number) =>
      proxy.publish({
        subject: `mortise.v1.weights.${run}.receipt.${engine}`,
        schema: WeightsRecordSchema,
        message: {
          record: {
            case: "receipt",
            value: { run, version: 0n, sha256: manifest.sha256, engine, canaryNorm },
          },
        },
        dedupeId: `${run}/0/${engine}`,
      });
    await acknowledge("honest", manifest.canaryNorm * (1 + 1e-7));
    await acknowledge("unchanged", manifest.canaryNorm + 0.5);
    await proxy.close();
    const receipts = new Receipts(log);
    await receipts.start(bus, run);
    expect(receipts.enginesAt(0)).toBe(2);
    expect(receipts.enginesAt(1)).toBe(0);
    expect(receipts.mismatches).toBe(1);
    await receipts.stop();
  });
});
