/**
 * Owns the model endpoint of one pod: a listener of the helper on the pod's loopback, whose connections come over one
 * exec stream and are joined to the proxy here. The pod's network stays closed: what leaves it is that stream.
 *
 * T1  Each direction of a connection has a window. A reader that is slow holds up nobody else and fills no memory.
 */
import { Duplex } from "node:stream";
import { MortiseError } from "@mortise/contracts";
import { type InnerEnd, ModelRelay } from "../relay.js";
import { MODEL_PORT, type ModelAddress } from "../types.js";
import type { ExecStream } from "./exec-stream.js";
import { type Frame, frameOf, framesOf, KIND, MAX_FRAME_BYTES } from "./frames.js";
import type { HelperResult, PodHelper } from "./helper.js";

/** As in pod-helper/relay.go. */
const WINDOW_BYTES = 256 * 1024;

export class ModelTunnel {
  readonly #relay: ModelRelay;
  readonly #carried = new Map<number, Carried>();
  readonly #begun = Promise.withResolvers<void>();
  #stream: ExecStream | undefined;
  #isClosed = false;
  #isBroken = false;

  private constructor(upstream: ModelAddress) {
    this.#relay = ModelRelay.carried(upstream);
  }

  /** Resolves once the helper listens. Rejects with MORTISE_SANDBOX_SETUP. */
  static async open(helper: PodHelper, upstream: ModelAddress): Promise<ModelTunnel> {
    const tunnel = new ModelTunnel(upstream);
    try {
      const stream = await helper.relay(MODEL_PORT, (frame) => tunnel.#take(frame));
      tunnel.#stream = stream;
      void stream.ended.then((reason) => tunnel.#broken(reason));
      await tunnel.#begun.promise;
      return tunnel;
    } catch (cause) {
      await tunnel.close();
      throw new MortiseError({
        code: "MORTISE_SANDBOX_SETUP",
        message: `model endpoint: ${(cause as Error).message}`,
        cause,
      });
    }
  }

  /** Whether the proxy could not be reached, or the stream that leads here broke. */
  get isUnreachable(): boolean {
    return this.#relay.isUnreachable || this.#isBroken;
  }

  get modelTimeMs(): number {
    return this.#relay.modelTimeMs;
  }

  /** Ends the listener and every connection. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stream?.close();
    for (const one of this.#carried.values()) one.destroy();
    await this.#relay.close();
    await this.#stream?.ended;
  }

  #broken(reason: string): void {
    this.#begun.reject(new Error(reason));
    if (this.#isClosed) return;
    this.#isBroken = true;
    for (const one of this.#carried.values()) one.destroy();
  }

  #take({ kind, number, bytes }: Frame): void {
    if (kind === KIND.begun) this.#begun.resolve();
    else if (kind === KIND.result)
      this.#begun.reject(new Error((JSON.parse(bytes.toString()) as HelperResult).error));
    else if (kind === KIND.opened) this.#open(number);
    else if (kind === KIND.data) this.#carried.get(number)?.received(bytes);
    else if (kind === KIND.end) this.#carried.get(number)?.received(null);
    else if (kind === KIND.credit) this.#carried.get(number)?.credited(bytes.readUInt32BE(0));
    else if (kind === KIND.kill) this.#carried.get(number)?.destroy();
  }

  #open(number: number): void {
    const one = new Carried(number, (frame) => void this.#stream?.send(frame));
    this.#carried.set(number, one);
    one.once("close", () => this.#carried.delete(number));
    this.#relay.join(one);
  }
}

/** One connection of the pod, as the relay sees it. */
class Carried extends Duplex implements InnerEnd {
  readonly #number: number;
  readonly #send: (frame: Buffer) => void;
  #room = WINDOW_BYTES;
  #isReading = false;
  /** What came and was not asked for yet; `null` is its end. */
  readonly #arrived: (Buffer | null)[] = [];
  #writing: { rest: Buffer; done: (error?: Error | null) => void } | undefined;

  constructor(number: number, send: (frame: Buffer) => void) {
    super({ allowHalfOpen: true });
    this.#number = number;
    this.#send = send;
  }

  received(bytes: Buffer | null): void {
    this.#arrived.push(bytes);
    if (this.#isReading) this.#hand();
  }

  credited(bytes: number): void {
    this.#room += bytes;
    this.#write();
  }

  destroySoon(): void {
    if (this.writableFinished || this.destroyed) this.destroy();
    else {
      this.once("finish", () => this.destroy());
      this.end();
    }
  }

  override _read(): void {
    this.#isReading = true;
    this.#hand();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#writing = { rest: chunk, done };
    this.#write();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#send(frameOf(KIND.end, this.#number));
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#send(frameOf(KIND.kill, this.#number));
    this.#writing?.done(error);
    this.#writing = undefined;
    done(error);
  }

  /** T1: the pod may send as much more as was taken. */
  #hand(): void {
    while (this.#isReading && this.#arrived.length > 0) {
      const bytes = this.#arrived.shift()!;
      if (bytes !== null) this.#send(creditOf(this.#number, bytes.byteLength));
      this.#isReading = this.push(bytes);
    }
  }

  /** T1 */
  #write(): void {
    const writing = this.#writing;
    if (writing === undefined) return;
    while (this.#room > 0 && writing.rest.byteLength > 0) {
      const piece = writing.rest.subarray(0, Math.min(this.#room, MAX_FRAME_BYTES));
      this.#room -= piece.byteLength;
      writing.rest = writing.rest.subarray(piece.byteLength);
      for (const frame of framesOf(KIND.data, this.#number, piece)) this.#send(frame);
    }
    if (writing.rest.byteLength > 0) return;
    this.#writing = undefined;
    writing.done();
  }
}

function creditOf(number: number, bytes: number): Buffer {
  const credit = Buffer.alloc(4);
  credit.writeUInt32BE(bytes);
  return frameOf(KIND.credit, number, credit);
}
