/**
 * Owns asking the helper in a pod for something: a request, what goes with it, and its result. One exec a request.
 * Does not interpret results; pod-helper/serve.go is the other end.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "./cluster.js";
import { ExecStream } from "./exec-stream.js";
import { type Frame, frameOf, framesOf, KIND } from "./frames.js";

/** As in pod-helper/serve.go: an image of another release is refused by its own word. */
export const PROTOCOL = 1;
const OPEN_ATTEMPTS = 4;
const OPEN_PAUSE_MS = 100;

/** In the relay's image, and where its copy is in the sandbox. */
export const HELPER_IN_IMAGE = "/pod-helper";
export const HELPER_DIRECTORY = "/.mortise";
export const HELPER_IN_SANDBOX = `${HELPER_DIRECTORY}/pod-helper`;

export type HelperRequest =
  | {
      readonly operation: "run";
      readonly argv: readonly string[];
      readonly environment: readonly string[];
      readonly cwd: string;
      readonly user: number;
      readonly hasStdin: boolean;
    }
  | {
      readonly operation: "put";
      readonly directory: string;
      readonly user?: number;
      readonly keepsOwners?: boolean;
      readonly isOwnedLikeDirectory?: boolean;
      readonly isReplacing?: boolean;
    }
  | { readonly operation: "remove"; readonly directory: string; readonly names: readonly string[] }
  | { readonly operation: "write"; readonly path: string; readonly content: string }
  | { readonly operation: "account"; readonly user: number }
  | { readonly operation: "list"; readonly directory: string; readonly maxBytes: number }
  | {
      readonly operation: "pack";
      readonly directory: string;
      readonly maxBytes: number;
      readonly maxMembers: number;
      /** Only these leaves; everything when absent. */
      readonly names?: readonly string[];
    }
  /** At once, or once its input ends. */
  | { readonly operation: "kill"; readonly hasStdin?: boolean }
  | { readonly operation: "counters" }
  | { readonly operation: "probe"; readonly targets: readonly HelperTarget[] };

export interface HelperTarget {
  readonly host?: string;
  readonly port?: number;
  readonly abstract?: string;
  readonly protocol: "tcp" | "udp";
  readonly datagram?: string;
}

export interface HelperResult {
  readonly code: number;
  readonly signal?: number;
  readonly error?: string;
  /** Why there is no such directory. */
  readonly missing?: string;
  readonly refused?: string;
  readonly counters?: Readonly<Record<string, string>>;
  readonly interfaces?: readonly string[];
  readonly states?: readonly string[];
}

/** The stream ended before there was a result. */
export class HelperLost extends Error {}

export interface HelperWishes {
  readonly input?: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  readonly onOutput?: (chunk: Buffer) => void;
  readonly onErrors?: (chunk: Buffer) => void;
  readonly onBegun?: (begun: HelperResult) => void;
}

/** The helper in one container. */
export class PodHelper {
  readonly #cluster: Cluster;
  readonly #pod: string;
  readonly #container: string;
  readonly #program: string;

  constructor(
    cluster: Cluster,
    place: { readonly pod: string; readonly container: string; readonly program: string },
  ) {
    this.#cluster = cluster;
    this.#pod = place.pod;
    this.#container = place.container;
    this.#program = place.program;
  }

  /** Rejects when no stream could be opened: then nothing was done. */
  async open(request: HelperRequest, wishes: HelperWishes = {}): Promise<HelperCall> {
    const result = Promise.withResolvers<HelperResult>();
    const take = ({ kind, bytes }: Frame) => {
      if (kind === KIND.output) wishes.onOutput?.(bytes);
      else if (kind === KIND.errors) wishes.onErrors?.(bytes);
      else if (kind === KIND.begun) wishes.onBegun?.(JSON.parse(bytes.toString()) as HelperResult);
      else if (kind === KIND.result) result.resolve(JSON.parse(bytes.toString()) as HelperResult);
    };
    const stream = await this.#stream(["serve"], take);
    void stream.send(
      frameOf(KIND.request, 0, Buffer.from(JSON.stringify({ protocol: PROTOCOL, ...request }))),
    );
    void stream.ended.then((reason) => result.reject(new HelperLost(reason)));
    const call = new HelperCall(stream, result.promise);
    if (wishes.input !== undefined)
      // What cannot be read on is never finished: the stream ends, and with it the request.
      call.feed(wishes.input).catch((error: Error) => {
        result.reject(error);
        call.close();
      });
    return call;
  }

  /** The result of a request that must not fail. Rejects with the helper's words. */
  async ask(request: HelperRequest, wishes: HelperWishes = {}): Promise<HelperResult> {
    const result = await (await this.open(request, wishes)).result;
    if (result.error !== undefined) throw new Error(result.error);
    return result;
  }

  /** Another part of the helper, with frames of its own. */
  relay(port: number, onFrame: (frame: Frame) => void): Promise<ExecStream> {
    return this.#stream(["relay", String(port)], onFrame);
  }

  /** Nothing was done where none could be opened, so it is tried again: a server may be busy or be coming back. */
  async #stream(argv: readonly string[], onFrame: (frame: Frame) => void): Promise<ExecStream> {
    const place = { pod: this.#pod, container: this.#container, argv: [this.#program, ...argv] };
    for (let attempt = 1; ; attempt++) {
      try {
        return await ExecStream.open(this.#cluster, place, onFrame);
      } catch (error) {
        if (attempt === OPEN_ATTEMPTS) throw error;
        await delay(OPEN_PAUSE_MS * 2 ** attempt);
      }
    }
  }
}

/** A request under way. */
export class HelperCall {
  readonly #stream: ExecStream;
  /** Rejects with HelperLost. The stream is closed either way. */
  readonly result: Promise<HelperResult>;

  constructor(stream: ExecStream, result: Promise<HelperResult>) {
    this.#stream = stream;
    this.result = result.finally(() => stream.close());
    this.result.catch(() => undefined);
  }

  /** What the request reads, to its end. */
  async feed(input: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    for await (const piece of input)
      for (const frame of framesOf(KIND.data, 0, piece)) await this.#stream.send(frame);
    await this.#stream.send(frameOf(KIND.end, 0));
  }

  /** Ends the command with everything it started; the result follows. */
  kill(): void {
    void this.#stream.send(frameOf(KIND.kill, 0));
  }

  /** Gives up: there will be no result, and the helper ends what runs. */
  close(): void {
    this.#stream.close();
  }
}
