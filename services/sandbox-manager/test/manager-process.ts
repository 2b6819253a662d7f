/** A real sandbox-manager process with its site file, identity and state directory, on a real NATS server. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { endProcess, type NatsFixture, whenReady } from "@mortise/testkit";

const MAIN = path.join(import.meta.dirname, "../dist/main.js");

export interface ManagerSite {
  readonly directory: string;
  readonly tasks: string;
  readonly harness: string;
  readonly backend: string;
  /** More lines of the [sandbox] table. */
  readonly sandbox?: string;
  /** Variables of the process besides this one's. */
  readonly environment?: Readonly<Record<string, string>>;
}

export class ManagerProcess {
  readonly #site: string;
  readonly #environment: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #output = "";
  #rpcAddress = "";

  constructor(nats: NatsFixture, site: ManagerSite) {
    this.#environment = site.environment ?? {};
    const identity = path.join(site.directory, "identity");
    mkdirSync(identity, { recursive: true });
    const { user, password, bearer } = nats.identity("sandbox-manager");
    writeFileSync(path.join(identity, "sandbox-manager.json"), JSON.stringify({ user, password, bearer }));
    this.#site = path.join(site.directory, "site.toml");
    writeFileSync(
      this.#site,
      `nats.url = "${nats.url}"
identity.directory = "${identity}"
state.directory = "${path.join(site.directory, "state")}"
tasks.directory = "${site.tasks}"

[sandbox]
backend = "${site.backend}"
${site.sandbox ?? ""}

[harness.scripted]
directory = "${site.harness}"
argv = ["node", "/opt/harness/fake-harness.cjs"]
environment = { MODEL_URL = "{model_url}", TOKEN = "{token}", INSTRUCTION = "{instruction}" }
exitCodes = { 6 = "turn-limit" }
`,
    );
  }

  /** Of the process that runs now; its presence entry may still name the one before. */
  get rpcAddress(): string {
    return this.#rpcAddress;
  }

  /** Everything the process wrote. */
  get output(): string {
    return this.#output;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [MAIN, "--site", this.#site], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...this.#environment },
    });
    this.#child = child;
    const onOutput = (text: string) => {
      this.#output += text;
    };
    this.#rpcAddress = (await whenReady(child, "manager", { onOutput })).rpc as string;
  }

  /** As a crash would. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Drains; resolves with the exit code. */
  async stop(): Promise<number | null> {
    return this.#end("SIGTERM");
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    this.#child = undefined;
    return child === undefined ? null : endProcess(child, signal);
  }
}
