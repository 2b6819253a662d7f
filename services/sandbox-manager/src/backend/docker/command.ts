/**
 * Owns one command in a running container: the engine's `exec`, its streams, and how it ended. A command has ended
 * when its first process has, whatever it left behind: that is killed, so that its output has an end.
 * Does not decide about timeouts and limits of the sandbox.
 */
import { constants as osConstants } from "node:os";
import { PassThrough } from "node:stream";
import type Docker from "dockerode";
import { OutputCollector } from "../output.js";
import { type Command, type Outcome, USER_IDS } from "../types.js";
import type { ContainerProcesses } from "./container-processes.js";

/** `lost`: the engine's host can no longer be reached. */
export type Ending = "timeout" | "cancelled" | "destroyed" | "lost";

const SIGNAL_BASE = 128;
const SIGNAL_NAMES = new Map(Object.entries(osConstants.signals).map(([name, number]) => [number, name]));
/** How often a command that takes longer is looked at, and a kill repeated that found nothing yet. */
const LOOK_MS = 100;
const REASON_BYTES = 600;

export interface CommandFacts {
  readonly container: Docker.Container;
  readonly processes: ContainerProcesses;
  readonly command: Command;
  readonly workdir: string;
  readonly outputBytes: number;
  /** Whether no other command runs: then every process but the container's first is this one's. */
  readonly isAlone: () => boolean;
}

export class ContainerCommand {
  readonly #facts: CommandFacts;
  readonly #stdout: OutputCollector;
  readonly #stderr: OutputCollector;
  #ending: Ending | undefined;
  #pid = 0;
  #exec: Docker.Exec | undefined;
  #killing: Promise<void> | undefined;
  #isOver = false;

  constructor(facts: CommandFacts) {
    this.#facts = facts;
    this.#stdout = new OutputCollector(facts.outputBytes);
    this.#stderr = new OutputCollector(facts.outputBytes);
  }

  get stdout(): OutputCollector {
    return this.#stdout;
  }
  get stderr(): OutputCollector {
    return this.#stderr;
  }

  /** Why it ends, when its container does; the first reason given is the one reported. */
  mark(ending: Ending): void {
    this.#ending ??= ending;
  }

  /** Kills it and what it started. */
  end(ending: Ending): void {
    this.mark(ending);
    void this.#kill();
  }

  /** Never rejects for what the command does. */
  async run(): Promise<Outcome> {
    const { command } = this.#facts;
    const abort = () => this.end("cancelled");
    const timer = setTimeout(() => this.end("timeout"), command.timeoutMs);
    command.signal?.addEventListener("abort", abort, { once: true });
    if (command.signal?.aborted) this.#ending = "cancelled";
    try {
      return this.#ended() ?? (await this.#run());
    } catch (error) {
      return this.#ended() ?? { kind: "refused", reason: (error as Error).message };
    } finally {
      await this.#killing;
      this.#isOver = true;
      clearTimeout(timer);
      command.signal?.removeEventListener("abort", abort);
    }
  }

  async #run(): Promise<Outcome> {
    const { container, command, workdir } = this.#facts;
    const id = USER_IDS[command.user ?? "agent"];
    this.#exec = await container.exec({
      Cmd: [...command.argv],
      Env: Object.entries(command.environment).map(([name, value]) => `${name}=${value}`),
      WorkingDir: command.cwd ?? workdir,
      User: `${id}:${id}`,
      AttachStdin: command.stdin !== undefined,
      AttachStdout: true,
      AttachStderr: true,
    });
    const stream = await this.#exec.start({ hijack: true, stdin: command.stdin !== undefined });
    this.#collect(stream);
    const watch = setInterval(() => void this.#look(), LOOK_MS);
    try {
      if (command.stdin !== undefined) stream.end(command.stdin);
      await new Promise<void>((resolve) =>
        stream
          .once("close", resolve)
          .once("end", resolve)
          .once("error", () => resolve()),
      );
    } finally {
      clearInterval(watch);
    }
    // A daemon that wrote elsewhere, and one that is being killed.
    await this.#kill();
    return this.#ended() ?? (await this.#outcome());
  }

  #collect(stream: NodeJS.ReadWriteStream): void {
    const { container, command } = this.#facts;
    const [out, err] = [new PassThrough(), new PassThrough()];
    out.on("data", (chunk: Uint8Array) => {
      this.#stdout.add(chunk);
      command.onStdout?.(chunk);
    });
    err.on("data", (chunk: Uint8Array) => {
      this.#stderr.add(chunk);
      command.onStderr?.(chunk);
    });
    container.modem.demuxStream(stream, out, err);
  }

  async #outcome(): Promise<Outcome> {
    const { ExitCode: code, Running: isRunning, Pid: pid } = await this.#exec!.inspect();
    const ended = this.#ended();
    if (ended !== undefined) return ended;
    if (isRunning || code === null) return { kind: "lost", reason: "the container ended under the command" };
    // Nothing had a number: nothing ran, and the engine's words came as its output.
    if (pid === 0) return { kind: "refused", reason: this.#words() };
    const signal = SIGNAL_NAMES.get(code - SIGNAL_BASE);
    return signal === undefined ? { kind: "exited", code } : { kind: "signalled", signal };
  }

  #words(): string {
    const bytes = Buffer.concat([this.#stdout.end().bytes, this.#stderr.end().bytes]);
    return bytes.toString("utf8").slice(-REASON_BYTES).trim() || "the engine did not start it";
  }

  async #look(): Promise<void> {
    if (this.#ending !== undefined) return this.#kill();
    if (this.#pid === 0) {
      const state = await this.#exec!.inspect().catch(() => undefined);
      this.#pid = state?.Pid ?? 0;
    }
    if (this.#pid === 0) return;
    const look = await this.#facts.processes.look(this.#pid).catch(() => undefined);
    if (look !== undefined && !look.isAlive) await this.#kill();
  }

  /** Once at a time, and never after this command: what runs then is another's. */
  #kill(): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    this.#killing ??= this.#killWhatIsThere().finally(() => {
      this.#killing = undefined;
    });
    return this.#killing;
  }

  async #killWhatIsThere(): Promise<void> {
    const { processes, isAlone } = this.#facts;
    try {
      const isAnything = isAlone() ? !(await processes.look(undefined)).isIdle : this.#pid !== 0;
      if (isAnything) await processes.killCommand(this.#pid || undefined, isAlone);
    } catch {
      // A container which is gone, or its host: the stream ends with it, and says the rest.
    }
  }

  #ended(): Outcome | undefined {
    if (this.#ending === undefined) return undefined;
    if (this.#ending === "destroyed") return { kind: "lost", reason: "the sandbox was destroyed" };
    if (this.#ending === "lost") return { kind: "lost", reason: "the engine's host was lost" };
    return { kind: this.#ending };
  }
}
