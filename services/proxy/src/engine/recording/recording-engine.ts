/**
 * Owns writing down what an engine does: every request, every id, every log-probability, when each came. Wraps
 * any engine and changes nothing about it. A turn is in the file before its caller has it.
 */
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, fromUnknown } from "@mortise/kernel";
import type {
  Engine,
  EngineCapabilities,
  EngineStatus,
  Generated,
  GenerateRequest,
  LoadedWeights,
} from "../types.js";
import { RECORDING_FORMAT, type RecordedLine, recordedRequest, recordedResult } from "./format.js";

export class RecordingEngine implements Engine {
  readonly file: string;
  private readonly inner: Engine;
  private readonly clock: Clock;
  private readonly handle: FileHandle;
  private tail: Promise<void> = Promise.resolve();

  private constructor(inner: Engine, clock: Clock, file: string, handle: FileHandle) {
    this.inner = inner;
    this.clock = clock;
    this.file = file;
    this.handle = handle;
  }

  /** Records `inner` into a new file of `directory`, readable by this user only. */
  static async open(inner: Engine, directory: string, clock: Clock): Promise<RecordingEngine> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const file = join(directory, `${inner.id}-${clock.now()}.jsonl`);
    const handle = await open(file, "ax", 0o600);
    const { id: engine, capabilities } = inner;
    await handle.appendFile(
      `${JSON.stringify({ format: RECORDING_FORMAT, schema: 1, engine, capabilities })}\n`,
    );
    return new RecordingEngine(inner, clock, file, handle);
  }

  get id(): string {
    return this.inner.id;
  }

  get capabilities(): EngineCapabilities {
    return this.inner.capabilities;
  }

  async generate(request: GenerateRequest): Promise<Generated> {
    const startedAt = this.clock.now();
    const elapsed = () => this.clock.now() - startedAt;
    const chunks: [number, number][] = [];
    const given: number[] = [];
    const { onIds } = request;
    const listen = (ids: readonly number[]) => {
      chunks.push([elapsed(), ids.length]);
      given.push(...ids);
      onIds?.(ids);
    };
    let generated: Generated;
    try {
      generated = await this.inner.generate({ ...request, onIds: onIds && listen });
    } catch (error) {
      const reason = fromUnknown(error, "MORTISE_PROVIDER_ENGINE").message;
      await this.write({
        kind: "failure",
        request: recordedRequest(request),
        ids: given,
        reason,
        endMs: elapsed(),
      });
      throw error;
    }
    const missed = generated.ids.length - given.length;
    if (missed > 0) chunks.push([elapsed(), missed]);
    await this.write({
      kind: "turn",
      request: recordedRequest(request),
      ...recordedResult(generated),
      chunks,
      endMs: elapsed(),
    });
    return generated;
  }

  async loadWeights(weights: LoadedWeights & { readonly safetensors: Uint8Array }): Promise<void> {
    await this.inner.loadWeights(weights);
    await this.write({ kind: "weights", version: weights.version, sha256: weights.sha256 });
  }

  status(): EngineStatus {
    return this.inner.status();
  }

  async close(): Promise<void> {
    await this.inner.close();
    await this.tail.catch(() => {});
    await this.handle.close();
  }

  /** One write at a time, in order. A write that fails fails its turn and every later one. */
  private write(line: RecordedLine): Promise<void> {
    const text = `${JSON.stringify(line)}\n`;
    this.tail = this.tail.then(() => this.handle.appendFile(text));
    return this.tail;
  }
}
