/** Owns the long-running programs of a test cluster: their logs, and that each ends when it is told to. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const LOG_CHARACTERS = 2000;
const END_PATIENCE_MS = 10_000;

export class Processes {
  readonly #directory: string;
  readonly #started: { readonly name: string; readonly child: ChildProcess }[] = [];

  /** @param directory for their logs */
  constructor(directory: string) {
    this.#directory = directory;
  }

  start(name: string, program: string, argv: readonly string[]): void {
    const log = openSync(path.join(this.#directory, `${name}.log`), "a");
    const child = spawn(program, argv, { stdio: ["ignore", log, log], cwd: this.#directory });
    child.on("error", () => undefined);
    closeSync(log);
    this.#started.push({ name, child });
  }

  /** Asks until it is so. Rejects with the log of a process that has ended meanwhile, or of the last one. */
  async until(what: string, isSo: () => Promise<boolean>, timeoutMs: number): Promise<void> {
    for (const deadline = Date.now() + timeoutMs; Date.now() < deadline; await delay(200)) {
      const ended = this.#started.find(({ child }) => child.exitCode !== null || child.signalCode !== null);
      if (ended !== undefined) throw new Error(`${ended.name} ended: ${this.#logOf(ended.name)}`);
      if (await isSo().catch(() => false)) return;
    }
    throw new Error(`${what} did not come: ${this.#logOf(this.#started.at(-1)!.name)}`);
  }

  /** The last started first. */
  async stop(): Promise<void> {
    for (const { child } of this.#started.splice(0).reverse()) {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) continue;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await Promise.race([ended, delay(END_PATIENCE_MS, undefined, { ref: false })]);
      child.kill("SIGKILL");
      await ended;
    }
  }

  #logOf(name: string): string {
    return readFileSync(path.join(this.#directory, `${name}.log`), "utf8").slice(-LOG_CHARACTERS);
  }
}
