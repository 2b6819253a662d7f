/** A real verifier process with its site file and identity, on a real NATS server. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { endProcess, type NatsFixture, whenReady } from "@mortise/testkit";

const MAIN = path.join(import.meta.dirname, "../dist/main.js");

export class VerifierProcess {
  readonly #site: string;
  #child: ChildProcess | undefined;

  /** `lines` are more of the [verifier] table. */
  constructor(nats: NatsFixture, directory: string, tasks: string, lines = "") {
    const identity = path.join(directory, "identity");
    mkdirSync(identity, { recursive: true });
    writeFileSync(path.join(identity, "verifier.json"), JSON.stringify(nats.identity("verifier")));
    this.#site = path.join(directory, "site.toml");
    writeFileSync(
      this.#site,
      `nats.url = "${nats.url}"
identity.directory = "${identity}"
state.directory = "${path.join(directory, "state")}"
tasks.directory = "${tasks}"
[verifier]
${lines}
`,
    );
  }

  /** Resolves when it has said that it is ready. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, [MAIN, "--site", this.#site], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    await whenReady(child, "verifier");
  }

  /** Ends it; resolves with the exit code. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    this.#child = undefined;
    return child === undefined ? null : endProcess(child, signal);
  }
}
