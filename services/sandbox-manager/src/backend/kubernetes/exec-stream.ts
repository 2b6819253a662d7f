/**
 * Owns one `exec` in a container of a pod as a two-way stream of frames: the API server's websocket, its channels, and
 * how it ended. Does not know what the frames say.
 *
 * X1  The command line of an exec is part of a URL, which API servers keep in their audit logs: it names the helper
 *     and nothing else. Everything about a command, its environment above all, goes over the stream.
 */
import { Exec, type V1Status } from "@kubernetes/client-node";
import type { Cluster } from "./cluster.js";
import { type Frame, FrameReader } from "./frames.js";

const OPEN_TIMEOUT_MS = 30_000;
/** What the socket may hold that has not left yet; more waits here. */
const MAX_BUFFERED_BYTES = 1024 * 1024;
const BUFFER_LOOK_MS = 5;
const MAX_ERROR_CHARACTERS = 600;
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3 } as const;

export interface ExecPlace {
  readonly pod: string;
  readonly container: string;
  readonly argv: readonly string[];
}

/** Of what `ws` has, what is used here. */
interface Socket {
  readonly bufferedAmount: number;
  readonly readyState: number;
  send(bytes: Uint8Array): void;
  terminate(): void;
  on(event: "close", listener: (code: number) => void): void;
  on(event: "error", listener: (error: Error) => void): void;
}
const OPEN = 1;

export class ExecStream {
  /** Resolves, never rejects, with why there are no more frames. */
  readonly ended: Promise<string>;
  readonly #socket: Socket;
  #last: Promise<void> = Promise.resolve();

  private constructor(socket: Socket, ended: Promise<string>) {
    this.#socket = socket;
    this.ended = ended;
  }

  /** Rejects with the reason when the container is not there or does not run. */
  static async open(
    { config, namespace }: Cluster,
    { pod, container, argv }: ExecPlace,
    onFrame: (frame: Frame) => void,
  ): Promise<ExecStream> {
    const query = new URLSearchParams({ container, stdin: "true", stdout: "true", stderr: "true" });
    for (const word of argv) query.append("command", word);
    const path = `/api/v1/namespaces/${namespace}/pods/${pod}/exec?${query}`;
    const reader = new FrameReader();
    const over = Promise.withResolvers<string>();
    let errors = "";
    let status: V1Status | undefined;
    const opening = new Exec(config).handler.connect(path, null, (channel, bytes) => {
      if (channel === CHANNEL.stderr) errors = (errors + bytes.toString()).slice(-MAX_ERROR_CHARACTERS);
      if (channel === CHANNEL.status) status = JSON.parse(bytes.toString()) as V1Status;
      if (channel !== CHANNEL.stdout) return true;
      try {
        for (const frame of reader.read(bytes)) onFrame(frame);
        return true;
      } catch (error) {
        over.resolve((error as Error).message);
        return false;
      }
    });
    const socket = (await withinTime(opening, pod)) as unknown as Socket;
    socket.on("error", (error) => over.resolve(error.message));
    socket.on("close", (code) => over.resolve(reasonOf(status, errors) ?? `the stream was closed (${code})`));
    return new ExecStream(socket, over.promise);
  }

  /** In order; resolves when there is room for more. Nothing happens once the stream has ended. */
  send(frame: Uint8Array): Promise<void> {
    this.#last = this.#last.then(async () => {
      while (this.#isOpen && this.#socket.bufferedAmount > MAX_BUFFERED_BYTES)
        await new Promise((resolve) => setTimeout(resolve, BUFFER_LOOK_MS));
      if (this.#isOpen) this.#socket.send(Buffer.concat([Buffer.from([CHANNEL.stdin]), frame]));
    });
    return this.#last;
  }

  /** The helper sees the end of its input, and ends. Idempotent. */
  close(): void {
    this.#socket.terminate();
  }

  get #isOpen(): boolean {
    return this.#socket.readyState === OPEN;
  }
}

function reasonOf(status: V1Status | undefined, errors: string): string | undefined {
  if (errors.trim() !== "") return errors.trim();
  return status?.status === "Success" ? undefined : status?.message;
}

async function withinTime<T extends { terminate?: () => void }>(
  opening: Promise<T>,
  pod: string,
): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`${pod}: the API server opened no stream in time`)),
    OPEN_TIMEOUT_MS,
  );
  opening.then(
    (socket) => late.promise.catch(() => socket.terminate?.()),
    () => undefined,
  );
  try {
    return await Promise.race([opening, late.promise]);
  } catch (error) {
    // What `ws` rejects with is an event as browsers have them.
    const { message, error: inner } = error as { message?: string; error?: Error };
    throw new Error(inner?.message ?? message ?? "the API server refused the stream", { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
