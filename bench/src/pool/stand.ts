/**
 * Owns what the pool's benchmark runs on: a NATS server, a sandbox-manager as its own process with the mini harness,
 * demo tasks whose setup takes a known time, and the reports of trials. Everything it starts it ends.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import {
  CONSUMERS,
  KV_BUCKETS,
  LaunchWorkSchema,
  OBJECT_BUCKETS,
  type SandboxReport,
  SandboxReportSchema,
  SandboxService,
  STREAMS,
  subject,
} from "@mortise/contracts";
import {
  type Bus,
  type Client,
  connectBus,
  createLog,
  ensureTopology,
  type Following,
  rpcClient,
} from "@mortise/kernel";
import { generateDemoTasks, listTaskIds, taskDigest } from "@mortise/tasks";
import { endProcess, type NatsFixture, startNats, whenReady } from "@mortise/testkit";

export const RUN = "bench";
const MAIN = fileURLToPath(new URL("main.js", import.meta.resolve("@mortise/sandbox-manager")));
const MINI = fileURLToPath(new URL("../../../harnesses/mini", import.meta.url));

export interface TaskName {
  readonly id: string;
  readonly digest: string;
}

export interface StandOptions {
  readonly tasks: number;
  /** What each trial's setup waits for without using a processor. */
  readonly setupMs: number;
  readonly turns: number;
}

export class PoolStand {
  readonly tasks: readonly TaskName[];
  readonly #directory: string;
  readonly #nats: NatsFixture;
  readonly #bus: Bus;
  readonly #manager: ChildProcess;
  readonly #client: Client<typeof SandboxService>;
  readonly #listeners = new Set<(report: SandboxReport) => void>();
  #following: Following | undefined;

  private constructor(parts: {
    directory: string;
    tasks: readonly TaskName[];
    nats: NatsFixture;
    bus: Bus;
    manager: ChildProcess;
    client: Client<typeof SandboxService>;
  }) {
    this.tasks = parts.tasks;
    this.#directory = parts.directory;
    this.#nats = parts.nats;
    this.#bus = parts.bus;
    this.#manager = parts.manager;
    this.#client = parts.client;
  }

  static async start(options: StandOptions): Promise<PoolStand> {
    const directory = mkdtempSync(path.join(tmpdir(), "mortise-bench-pool-"));
    const tasks = slowTasks(path.join(directory, "tasks"), options);
    const nats = await startNats({ withUsers: true });
    try {
      return await PoolStand.#on(nats, directory, tasks, options);
    } catch (error) {
      await nats.stop();
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  static async #on(
    nats: NatsFixture,
    directory: string,
    tasks: readonly TaskName[],
    options: StandOptions,
  ): Promise<PoolStand> {
    const { user, password } = nats.identity("admin");
    const log = createLog({ service: "bench", level: "error" });
    const bus = await connectBus({ url: nats.url, user, password, name: "bench", log });
    await ensureTopology(bus, {
      streams: STREAMS,
      consumers: CONSUMERS,
      kv: KV_BUCKETS,
      objects: OBJECT_BUCKETS,
    });
    const { manager, rpcAddress } = await startManager(directory, nats, options);
    const { bearer } = nats.identity("sandbox-manager");
    const client = rpcClient(SandboxService, rpcAddress, { bearer });
    const stand = new PoolStand({ directory, tasks, nats, bus, manager, client });
    stand.#following = await bus.follow({
      stream: "TRIALS",
      filters: [`mortise.v1.trial.${RUN}.*.sandbox`],
      from: "first",
      schema: SandboxReportSchema,
      onMessage: (report) => {
        for (const listener of stand.#listeners) listener(report);
      },
    });
    return stand;
  }

  onReport(listener: (report: SandboxReport) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async launch(trial: string, task: TaskName, modelAddress: string): Promise<void> {
    await this.#bus.publish({
      subject: subject.launch(RUN, trial),
      schema: LaunchWorkSchema,
      message: {
        run: RUN,
        trial,
        group: task.id,
        task,
        harness: "mini",
        modelAddress,
        sessionToken: "t",
        model: "policy",
      },
      dedupeId: `${trial}/launch`,
    });
  }

  async startAgent(trial: string, lease: string): Promise<void> {
    await this.#client.startAgent({ run: RUN, trial, lease });
  }

  async stop(): Promise<void> {
    this.#client.close();
    await this.#following?.stop();
    await endProcess(this.#manager);
    await this.#bus.close();
    await this.#nats.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Demo tasks with a health check that passes after a while: setup that waits, as for a registry or a service. */
function slowTasks(directory: string, { tasks, setupMs }: StandOptions): TaskName[] {
  generateDemoTasks(directory, { seed: 1, train: tasks, heldOut: 1 });
  const ids = listTaskIds(directory).slice(0, tasks);
  return ids.map((id) => {
    const place = path.join(directory, id);
    const check = `\n[environment.healthcheck]\ncommand = "sleep ${setupMs / 1000}"\ntimeout_sec = 60\n`;
    appendFileSync(path.join(place, "task.toml"), check);
    return { id, digest: taskDigest(place) };
  });
}

async function startManager(directory: string, nats: NatsFixture, { turns }: StandOptions) {
  const identity = path.join(directory, "identity");
  mkdirSync(identity);
  writeFileSync(
    path.join(identity, "sandbox-manager.json"),
    JSON.stringify(nats.identity("sandbox-manager")),
    { mode: 0o600 },
  );
  const site = path.join(directory, "site.toml");
  writeFileSync(
    site,
    `nats.url = "${nats.url}"
identity.directory = "${identity}"
state.directory = "${path.join(directory, "state")}"
tasks.directory = "${path.join(directory, "tasks")}"

[harness.mini]
directory = "${MINI}"
argv = ["node", "/opt/harness/mini.cjs"]
exitCodes = { 6 = "turn-limit" }

[harness.mini.environment]
OPENAI_BASE_URL = "{model_url}"
OPENAI_API_KEY = "{token}"
OPENAI_MODEL = "{model}"
MINI_INSTRUCTION = "{instruction}"
MINI_WORKDIR = "{workspace}"
MINI_STREAM = "0"
MINI_MAX_TURNS = "${turns}"
`,
  );
  const manager = spawn(process.execPath, [MAIN, "--site", site], { stdio: ["ignore", "pipe", "inherit"] });
  return { manager, rpcAddress: (await whenReady(manager, "the sandbox-manager")).rpc as string };
}
