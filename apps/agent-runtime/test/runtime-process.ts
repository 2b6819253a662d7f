/** A real agent runtime process with a configuration of its own, and calls as any HTTP client makes them. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { InvocationResult } from "@mortise/contracts";
import { endProcess, whenReady } from "@mortise/testkit";

const MAIN = path.join(import.meta.dirname, "../dist/main.js");
const HARNESS = path.join(import.meta.dirname, "../../../services/sandbox-manager/test/fixtures/harness");

export interface RuntimeWish {
  readonly directory: string;
  readonly place: "runc" | "chroot" | "auto";
  /** More lines of the [limits] table. */
  readonly limits?: string;
  readonly archives?: string;
  /** More tables. */
  readonly more?: string;
  /** What it is started by, instead of Node alone. */
  readonly wrapper?: readonly [string, ...string[]];
}

export class RuntimeProcess {
  readonly token = "the-token-of-this-runtime";
  readonly #wish: RuntimeWish;
  readonly #file: string;
  #child: ChildProcess | undefined;
  #output = "";
  #port = 0;

  constructor(wish: RuntimeWish) {
    this.#wish = wish;
    mkdirSync(wish.directory, { recursive: true });
    this.#file = path.join(wish.directory, "runtime.toml");
    writeFileSync(this.tokenFile, `${this.token}\n`, { mode: 0o600 });
  }

  get tokenFile(): string {
    return path.join(this.#wish.directory, "token");
  }
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }
  get output(): string {
    return this.#output;
  }

  /** Listens at the port it had before, if it was started before. */
  async start(): Promise<void> {
    const { directory, place, limits = "", archives, more = "", wrapper = [] } = this.#wish;
    writeFileSync(
      this.#file,
      `[listen]
host = "127.0.0.1"
port = ${this.#port}

[auth]
tokenFile = "${this.tokenFile}"

[place]
kind = "${place}"
directory = "${path.join(directory, "state")}"

[images]
${archives === undefined ? "" : `archives = "${archives}"`}

[limits]
drainMs = 0
${limits}

[harness.mini]
adapter = "mini"

[harness.scripted]
directory = "${HARNESS}"
argv = ["node", "{runtime}/fake-harness.cjs"]
version = "7"
environment = { MODEL_URL = "{model_url}", TOKEN = "{token}", INSTRUCTION = "{instruction}" }
exitCodes = { 6 = "turn-limit" }
${more}
`,
    );
    this.#output = "";
    const [program, ...parameters] = [...wrapper, process.execPath, MAIN, "--config", this.#file];
    const child = spawn(program!, parameters, { stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    const onOutput = (text: string) => {
      this.#output += text;
    };
    const { url } = await whenReady(child, "the runtime", { event: "runtime.ready", onOutput });
    this.#port = Number(new URL(url as string).port);
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    const child = this.#child;
    return child === undefined ? null : endProcess(child, signal);
  }

  post(body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
    return fetch(`${this.url}/invocations`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${this.token}`, ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async invoke(body: unknown): Promise<InvocationResult> {
    const response = await this.post(body);
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
    return (await response.json()) as InvocationResult;
  }

  async ping(): Promise<{ status: string; time_of_last_update: number }> {
    return (await (await fetch(`${this.url}/ping`)).json()) as {
      status: string;
      time_of_last_update: number;
    };
  }
}
