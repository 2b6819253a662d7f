/**
 * Owns making a version the run's current one: upload, compare-and-set in the KV, announcement.
 * Does not own checkpoints on disk or what engines do with an announcement.
 *
 * U1  The KV value moves only from the revision this trainer read, so of two trainers one loses (DESIGN §6).
 * U2  A trainer whose fence is lower than the one in the KV writes nothing.
 */
import { createHash } from "node:crypto";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  MortiseError,
  subject,
  WeightsKind,
  type WeightsManifest,
  WeightsManifestSchema,
  WeightsRecordSchema,
} from "@mortise/contracts";
import { at, type Bus } from "@mortise/kernel";
import { readSafetensors } from "@mortise/policy";
import type { Checkpoint } from "./checkpoint-store.js";
import type { OnPhase } from "./phases.js";

/** The run's current weights as the KV has them. */
export interface Current {
  readonly manifest: WeightsManifest;
  readonly revision: number;
}

export interface PublicationOptions {
  readonly bus: Bus;
  readonly run: string;
  /** Hugging Face directory whose tokenizer and template belong to the policy. */
  readonly checkpoint: string;
  readonly fence: number;
  readonly onPhase: OnPhase;
}

export class Publication {
  readonly #options: PublicationOptions;

  constructor(options: PublicationOptions) {
    this.#options = options;
  }

  async current(): Promise<Current | undefined> {
    const kv = await this.#options.bus.kv("weights");
    const entry = await kv.get(this.#options.run);
    if (!entry) return undefined;
    const { value, revision } = entry;
    const manifest = await at("MORTISE_TRANSPORT_DECODE", `KV weights/${this.#options.run}`, () =>
      fromBinary(WeightsManifestSchema, value),
    );
    return { manifest, revision };
  }

  /**
   * Makes `checkpoint` the current version, following `from` (undefined: there is none yet).
   * @throws MortiseError MORTISE_TRANSPORT_FENCED when another trainer was first; nothing is current then that
   * was not before.
   */
  async publish(checkpoint: Checkpoint, from: Current | undefined): Promise<Current> {
    const { run, bus, fence, onPhase } = this.#options;
    const { version } = checkpoint.facts;
    if (from && from.manifest.fence > BigInt(fence)) throw fenced(run, version, "a newer trainer published"); // U2
    const manifest = this.#manifest(checkpoint);
    const objects = await bus.objects("weights");
    if (!(await objects.has(manifest.object))) await objects.put(manifest.object, checkpoint.weights);
    onPhase("uploaded", version);
    const kv = await bus.kv("weights");
    const value = toBinary(WeightsManifestSchema, manifest);
    const revision = from ? await kv.update(run, value, from.revision) : await kv.create(run, value);
    if (revision === undefined) throw fenced(run, version, "the current version changed meanwhile"); // U1
    onPhase("current", version);
    return { manifest, revision };
  }

  /** Announces the current version once, however often it is asked to. */
  async announce({ manifest }: Current): Promise<void> {
    const { bus, run, onPhase } = this.#options;
    const place = subject.weights(run, manifest.version);
    if (!(await bus.last("WEIGHTS", place, WeightsRecordSchema))) {
      await bus.publish({
        subject: place,
        schema: WeightsRecordSchema,
        message: { record: { case: "announced", value: manifest } },
        dedupeId: `${run}/weights/${manifest.version}`,
      });
    }
    onPhase("announced", Number(manifest.version));
  }

  /** Removes the bytes of a version that nobody may need any more. */
  async withdraw(sha256: string): Promise<void> {
    const objects = await this.#options.bus.objects("weights");
    await objects.delete(objectName(this.#options.run, sha256));
  }

  #manifest({ facts, weights }: Checkpoint): WeightsManifest {
    const canary = canaryOf(weights);
    return create(WeightsManifestSchema, {
      run: this.#options.run,
      version: BigInt(facts.version),
      kind: WeightsKind.FULL,
      sha256: facts.sha256,
      size: BigInt(weights.byteLength),
      object: objectName(this.#options.run, facts.sha256),
      canaryTensor: canary.tensor,
      canaryNorm: canary.norm,
      fence: BigInt(this.#options.fence),
      createdAtMs: BigInt(Date.now()),
      checkpoint: this.#options.checkpoint,
    });
  }
}

export function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/**
 * A trained tensor and its norm, which an engine reports back: proof that weights changed and not only their
 * label. The last down projection, because every update of a decoder moves it.
 */
export function canaryOf(weights: Uint8Array): { tensor: string; norm: number } {
  const file = readSafetensors(weights);
  const names = [...file.entries.keys()];
  const tensor = names.findLast((name) => name.endsWith("down_proj.weight")) ?? names.at(-1)!;
  let squares = 0;
  for (const value of file.read(tensor).values) squares += value * value;
  return { tensor, norm: Math.sqrt(squares) };
}

function objectName(run: string, sha256: string): string {
  return `${run}/${sha256}`;
}

function fenced(run: string, version: number, why: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRANSPORT_FENCED",
    message: `Version ${version} of run ${run} was not published: ${why}.`,
    detail: { run, version },
  });
}
