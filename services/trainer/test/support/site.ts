/** A deployment for one test file: nats-server with users, stored topology, identity, a tiny policy. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { KV_BUCKETS, OBJECT_BUCKETS, runConsumers, STREAMS } from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology } from "@mortise/kernel";
import { type NatsFixture, startNats } from "@mortise/testkit";
import { writeTinyPolicy } from "./tiny-policy.js";

const PROCESS = fileURLToPath(new URL("./trainer-process.ts", import.meta.url));
const WITHOUT_TFJS = new URL("./without-tfjs.mjs", import.meta.url).href;
/** Short, so that what a killed trainer held comes back within a test. */
const ACK_WAIT_MS = 2_000;

export interface TrainerProcess {
  readonly child: ChildProcess;
  /** Resolves to what ended the process: an exit code or a signal. */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** Everything written so far. */
  output(): string;
}

export class Site {
  readonly bus: Bus;
  readonly policy: string;
  readonly directory: string;
  readonly #nats: NatsFixture;
  readonly #children: TrainerProcess[] = [];

  static async start(): Promise<Site> {
    const directory = await mkdtemp(join(tmpdir(), "mortise-trainer-"));
    const nats = await startNats({ withUsers: true });
    const { user, password } = nats.identity("admin");
    const log = createLog({ service: "test", level: "silent" });
    const bus = await connectBus({ url: nats.url, user, password, name: "test", log });
    await ensureTopology(bus, { streams: STREAMS.map(small), kv: KV_BUCKETS, objects: OBJECT_BUCKETS });
    const identity = join(directory, "identity");
    await mkdir(identity);
    await writeFile(join(identity, "trainer.json"), JSON.stringify(nats.identity("trainer")), {
      mode: 0o600,
    });
    const site = {
      nats: nats.url,
      identity,
      state: join(directory, "state"),
      tasks: join(directory, "tasks"),
    };
    await writeFile(
      join(directory, "site.toml"),
      Object.entries(site)
        .map(
          ([table, value]) =>
            `[${table}]\n${table === "nats" ? "url" : "directory"} = ${JSON.stringify(value)}\n`,
        )
        .join(""),
    );
    return new Site(bus, await writeTinyPolicy(directory), directory, nats);
  }

  private constructor(bus: Bus, policy: string, directory: string, nats: NatsFixture) {
    this.bus = bus;
    this.policy = policy;
    this.directory = directory;
    this.#nats = nats;
  }

  get bearer(): string {
    return this.#nats.identity("trainer").bearer;
  }

  /** Writes the run file and creates the run's durable. `toml` is added to it. */
  async addRun(run: string, toml: string): Promise<void> {
    const head = `[run]\nid = "${run}"\nseed = 7\n[policy]\ncheckpoint = ${JSON.stringify(this.policy)}\nbackend = "embedded"\n`;
    await writeFile(join(this.directory, `${run}.toml`), head + toml);
    const consumers = runConsumers(run).map((consumer) => ({ ...consumer, ackWaitMs: ACK_WAIT_MS }));
    await ensureTopology(this.bus, { consumers });
  }

  startTrainer(
    run: string,
    options: { dieAfter?: string; args?: readonly string[]; withoutTfjs?: boolean } = {},
  ): TrainerProcess {
    const preload = options.withoutTfjs ? ["--import", WITHOUT_TFJS] : [];
    const flags = ["--site", join(this.directory, "site.toml"), "--run", join(this.directory, `${run}.toml`)];
    const child = spawn(process.execPath, [...preload, PROCESS, ...flags, ...(options.args ?? [])], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, MORTISE_TEST_DIE_AFTER: options.dieAfter ?? "" },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const ended = once(child, "close").then(([code, signal]) => (signal ?? code) as number | NodeJS.Signals);
    const started: TrainerProcess = { child, ended, output: () => output };
    this.#children.push(started);
    return started;
  }

  /** Spares a test the lifetime of a killed trainer's lease. */
  async freeLease(run: string): Promise<void> {
    await (await this.bus.kv("leases")).delete(`${run}.trainer`);
  }

  async stop(): Promise<void> {
    for (const { child } of this.#children)
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await Promise.all(this.#children.map(({ ended }) => ended));
    await this.bus.close();
    await this.#nats.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** The server reserves what a stream may hold; a test needs little. */
function small<T extends { readonly maxBytes: number }>(stream: T): T {
  return { ...stream, maxBytes: Math.min(stream.maxBytes, 64 * 1024 * 1024) };
}
