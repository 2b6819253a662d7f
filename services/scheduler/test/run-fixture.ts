/**
 * Owns one run on a real nats-server with the users of a deployment, fake peers, and the scheduler as a process of
 * its own. Everything it starts it ends.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import {
  CONSUMERS,
  filter,
  type GetRunStatusResponse,
  type GroupRecord,
  GroupRecordSchema,
  KV_BUCKETS,
  type MetricsRecord,
  MetricsRecordSchema,
  OBJECT_BUCKETS,
  RunPhase,
  runConsumers,
  SchedulerService,
  STREAMS,
  type TrialTransition,
  TrialTransitionSchema,
} from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology, findServices, rpcClient } from "@mortise/kernel";
import { type NatsFixture, startNats } from "@mortise/testkit";
import { FakeManager, FakeProxy, FakeTrainer, FakeVerifier } from "./fake-peers.js";
import { tasks } from "./simulated-world.js";

export const RUN = "r1";
const MAIN = join(dirname(fileURLToPath(import.meta.url)), "../dist/main.js");

export interface FixtureOptions {
  readonly steps?: number;
  readonly groupsPerStep?: number;
  readonly groupSize?: number;
  readonly attempts?: number;
  readonly slots?: number;
  readonly warm?: number;
  readonly rollout?: string;
  /** An evaluation alone, and its index where it is not the site's. */
  readonly isEvaluation?: boolean;
}

export class RunFixture {
  readonly bus: Bus;
  readonly proxy: FakeProxy;
  readonly manager: FakeManager;
  readonly verifier: FakeVerifier;
  readonly trainer: FakeTrainer;
  readonly #nats: NatsFixture;
  readonly #directory: string;
  #child: ChildProcess | undefined;
  output = "";

  private constructor(nats: NatsFixture, bus: Bus, directory: string, options: FixtureOptions) {
    this.#nats = nats;
    this.bus = bus;
    this.#directory = directory;
    const common = { bus, bearer: nats.identity("admin").bearer, run: RUN };
    this.proxy = new FakeProxy(common);
    this.manager = new FakeManager(common);
    this.verifier = new FakeVerifier(common);
    const { steps = 2, groupsPerStep = 3 } = options;
    this.trainer = new FakeTrainer({ ...common, steps, groupsPerStep, proxy: this.proxy });
  }

  static async create(options: FixtureOptions = {}): Promise<RunFixture> {
    const nats = await startNats({ withUsers: true });
    const log = createLog({ service: "test", level: process.env.TEST_LOG ?? "silent" });
    const { user, password } = nats.identity("admin");
    const bus = await connectBus({ url: nats.url, user, password, name: "test", log });
    const consumers = [...CONSUMERS, ...runConsumers(RUN)];
    await ensureTopology(bus, { streams: STREAMS, consumers, kv: KV_BUCKETS, objects: OBJECT_BUCKETS });
    const directory = await mkdtemp(join(tmpdir(), "mortise-scheduler-"));
    await writeConfiguration(directory, nats, options);
    return new RunFixture(nats, bus, directory, options);
  }

  async startPeers({ withTrainer = true } = {}): Promise<void> {
    await Promise.all([
      this.proxy.start(),
      this.manager.start(),
      this.verifier.start(),
      ...(withTrainer ? [this.trainer.start()] : []),
    ]);
  }

  /** Starts the scheduler process. */
  startScheduler(): void {
    const files = ["--site", join(this.#directory, "site.toml"), "--run", join(this.#directory, "run.toml")];
    this.#child = spawn(process.execPath, [MAIN, ...files], { stdio: ["ignore", "pipe", "pipe"] });
    const keep = (chunk: Buffer) => {
      this.output += chunk.toString();
    };
    this.#child.stdout!.on("data", keep);
    this.#child.stderr!.on("data", keep);
  }

  /** Ends it with a signal and resolves to its exit code; null when the signal killed it. */
  async endScheduler(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return child?.exitCode ?? null;
    const exited = once(child, "exit");
    child.kill(signal);
    return (await exited)[0];
  }

  exitCode(): Promise<number | null> {
    return once(this.#child!, "exit").then(([code]) => code);
  }

  async status(): Promise<GetRunStatusResponse | undefined> {
    const [found] = await findServices(this.bus, "scheduler");
    if (found === undefined) return undefined;
    const client = rpcClient(SchedulerService, found.rpcAddress, {
      bearer: this.#nats.identity("admin").bearer,
    });
    try {
      return await client.getRunStatus({});
    } catch {
      return undefined; // a presence of a process that was killed
    } finally {
      client.close();
    }
  }

  async finished(): Promise<void> {
    await this.until(async () => (await this.phases()).includes(RunPhase.FINISHED));
  }

  /** Waits for what other processes bring about; fails early, with its output, when the scheduler has ended. */
  async until(condition: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await condition())) {
      if (this.#child !== undefined && this.#child.exitCode !== null)
        throw new Error(`scheduler ended:\n${this.output}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  transitions(): Promise<TrialTransition[]> {
    return this.#read("TRIALS", filter.trialStates(RUN), TrialTransitionSchema);
  }

  groups(): Promise<GroupRecord[]> {
    return this.#read("GROUPS", filter.groups(RUN), GroupRecordSchema);
  }

  metrics(): Promise<MetricsRecord[]> {
    return this.#read("METRICS", filter.metrics(RUN), MetricsRecordSchema);
  }

  async phases(): Promise<RunPhase[]> {
    return (await this.metrics()).flatMap(({ record }) =>
      record.case === "phase" ? [record.value.phase] : [],
    );
  }

  async stop(): Promise<void> {
    await this.endScheduler("SIGKILL");
    await Promise.all([this.trainer.stop(), this.verifier.stop(), this.manager.stop(), this.proxy.stop()]);
    await this.bus.close();
    await this.#nats.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #read<D extends DescMessage>(
    stream: string,
    subjects: string,
    schema: D,
  ): Promise<MessageShape<D>[]> {
    const messages: MessageShape<D>[] = [];
    const onMessage = (message: MessageShape<D>) => void messages.push(message);
    const following = await this.bus.follow({
      stream,
      filters: [subjects],
      from: "first",
      schema,
      onMessage,
    });
    await following.caughtUp;
    await following.stop();
    return messages;
  }
}

/** What an evaluation records; it is what the file says, whatever the run does. */
export const PROTOCOL = { schema: 1, name: "test-2", attempts: 2 };
const EVALUATION = `evaluation.protocol = { schema = 1, name = "test-2", attempts = 2 }
`;

async function writeConfiguration(directory: string, nats: NatsFixture, o: FixtureOptions): Promise<void> {
  const { steps = 2, groupsPerStep = 3, groupSize = 4, attempts = 6, slots = 4, warm = 3, rollout = "" } = o;
  await mkdir(join(directory, "identity"));
  await mkdir(join(directory, "tasks"));
  const identity = JSON.stringify(nats.identity("scheduler"));
  await writeFile(join(directory, "identity/scheduler.json"), identity, { mode: 0o600 });
  const index = [...tasks("train", 5), ...tasks("heldout", 3)].map((task) => ({
    ...task,
    split: task.id.split("-")[0],
  }));
  await writeFile(join(directory, "tasks/index.json"), JSON.stringify({ schema: 1, tasks: index }));
  await writeFile(
    join(directory, "site.toml"),
    `nats.url = "${nats.url}"
identity.directory = "${directory}/identity"
state.directory = "${directory}/state"
tasks.directory = "${directory}/tasks"
`,
  );
  await writeFile(
    join(directory, "run.toml"),
    `run = { id = "${RUN}", seed = 7, mode = "${o.isEvaluation ? "evaluation" : "training"}" }
${o.isEvaluation ? EVALUATION : ""}policy.checkpoint = "/none"
evaluation.attempts = ${attempts}
trainer = { steps = ${steps}, groupsPerStep = ${groupsPerStep} }
[rollout]
groupSize = ${groupSize}
slots = ${slots}
warm = ${warm}
${rollout}
`,
  );
}
