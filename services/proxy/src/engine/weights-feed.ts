/**
 * Owns which weights each run should be sampled from, as the KV bucket says, and getting them into an engine:
 * fetch, check, swap, acknowledge. Newer versions overtake older ones that are still waiting. Of a run without a
 * trainer they are the checkpoint's own, for ever. Does not decide when a version is published (the trainer does)
 * nor who is served meanwhile (sessions.ts).
 */
import { createHash } from "node:crypto";
import { fromBinary } from "@bufbuild/protobuf";
import {
  MortiseError,
  subject,
  type WeightsManifest,
  WeightsManifestSchema,
  WeightsRecordSchema,
} from "@mortise/contracts";
import { type Bus, backoff, type Clock, fromUnknown, type Log, sleep } from "@mortise/kernel";
import { readSafetensors } from "@mortise/policy";
import type { Engine } from "./types.js";

const BUCKET = "weights";
/** Weights that cannot be loaded are tried again; an engine that never takes them must not fill the log. */
const RETRY = { baseMs: 500, maxMs: 10_000 };
/** Float32 norms summed in another order differ in the last digits. */
const NORM_TOLERANCE = 1e-5;

export class WeightsFeed {
  private readonly bus: Bus;
  private readonly log: Log;
  private readonly latest = new Map<string, WeightsManifest>();
  private readonly listeners = new Map<string, () => void>();
  private stopWatch: () => Promise<void> = async () => {};

  constructor(bus: Bus, log: Log) {
    this.bus = bus;
    this.log = log;
  }

  /** Starts watching. `onRun` is told of runs whose weights change from now on. */
  async start(onRun: (run: string) => void): Promise<void> {
    const kv = await this.bus.kv(BUCKET);
    let isLive = false;
    const watch = await kv.watch(">", (run, entry) => {
      const manifest = entry && this.read(run, entry.value);
      if (!manifest) return;
      this.latest.set(run, manifest);
      this.listeners.get(run)?.();
      if (isLive) onRun(run);
    });
    this.stopWatch = () => watch.stop();
    await watch.caughtUp;
    isLive = true;
  }

  async stop(): Promise<void> {
    await this.stopWatch();
  }

  /** What does not decode concerns its own run only: other runs are served on, and this one by what it has. */
  private read(run: string, value: Uint8Array): WeightsManifest | undefined {
    try {
      return fromBinary(WeightsManifestSchema, value);
    } catch (cause) {
      const err = fromUnknown(cause, "MORTISE_TRANSPORT_DECODE", `KV ${BUCKET}/${run}`);
      this.log.error({ event: "weights.undecodable", run, err });
      return undefined;
    }
  }

  /** Keeps an engine at the run's newest version until `signal` is aborted; tells `onLoaded` of each. */
  async serve(
    run: string,
    engine: Engine,
    options: { clock: Clock; signal: AbortSignal; onLoaded(): void },
  ): Promise<void> {
    const { clock, signal } = options;
    let acknowledged: bigint | undefined;
    let norm: number | undefined;
    let failures = 0;
    while (!signal.aborted) {
      const manifest = this.latest.get(run);
      if (!manifest || manifest.version === acknowledged) {
        await this.changed(run, signal);
        continue;
      }
      try {
        if (Number(manifest.version) !== engine.status().loaded?.version)
          norm = await this.load(manifest, engine, norm);
        options.onLoaded();
        await this.acknowledge(manifest, engine, norm ?? manifest.canaryNorm, clock);
        acknowledged = manifest.version;
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        this.log.error({ event: "weights.not-loaded", run, version: Number(manifest.version), err: error });
        await sleep(backoff(failures++, RETRY), clock, signal).catch(() => {});
      }
    }
  }

  /** Gives an engine the checkpoint's own weights as version 0, and acknowledges them. Tries until `signal`. */
  async pin(
    run: string,
    engine: Engine,
    options: { weights: Uint8Array; clock: Clock; signal: AbortSignal; onLoaded(): void },
  ): Promise<void> {
    const { weights: safetensors, clock, signal } = options;
    const sha256 = createHash("sha256").update(safetensors).digest("hex");
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        if (engine.status().loaded === undefined)
          await engine.loadWeights({ version: 0, sha256, safetensors });
        options.onLoaded();
        return await this.acknowledge({ run, version: 0n, sha256 }, engine, 0, clock);
      } catch (error) {
        if (signal.aborted) return;
        this.log.error({ event: "weights.not-loaded", run, version: 0, err: error });
        await sleep(backoff(failures, RETRY), clock, signal).catch(() => {});
      }
    }
  }

  private async load(manifest: WeightsManifest, engine: Engine, previousNorm: number | undefined) {
    const objects = await this.bus.objects(BUCKET);
    const safetensors = await objects.get(manifest.object);
    const sha256 = createHash("sha256").update(safetensors).digest("hex");
    if (sha256 !== manifest.sha256) throw corrupt(manifest, `the object has sha256 ${sha256}`);
    const norm = canaryNorm(safetensors, manifest);
    if (Math.abs(norm - manifest.canaryNorm) > NORM_TOLERANCE * Math.max(1, Math.abs(manifest.canaryNorm)))
      throw corrupt(manifest, `the norm of ${manifest.canaryTensor} is ${norm}, not ${manifest.canaryNorm}`);
    if (previousNorm === norm)
      this.log.warn({ event: "weights.unchanged", run: manifest.run, version: Number(manifest.version) });
    await engine.loadWeights({ version: Number(manifest.version), sha256, safetensors });
    return norm;
  }

  private async acknowledge(
    { run, version, sha256 }: Pick<WeightsManifest, "run" | "version" | "sha256">,
    engine: Engine,
    norm: number,
    clock: Clock,
  ): Promise<void> {
    await this.bus.publish({
      subject: subject.receipt(run, engine.id),
      schema: WeightsRecordSchema,
      message: {
        record: {
          case: "receipt",
          value: { run, version, sha256, engine: engine.id, canaryNorm: norm, atMs: BigInt(clock.now()) },
        },
      },
      dedupeId: `${run}/${version}/${engine.id}/receipt`,
    });
  }

  private changed(run: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.listeners.set(run, resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }
}

/** Euclidean norm of the tensor that must change between versions; 0 when the manifest names none. */
function canaryNorm(safetensors: Uint8Array, manifest: WeightsManifest): number {
  if (manifest.canaryTensor === "") return 0;
  let sum = 0;
  for (const value of readSafetensors(safetensors).read(manifest.canaryTensor).values) sum += value * value;
  return Math.sqrt(sum);
}

function corrupt(manifest: WeightsManifest, what: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_ENGINE",
    message: `Weights ${manifest.run} version ${manifest.version}: ${what}.`,
  });
}
