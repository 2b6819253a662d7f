/** What tests of a real manager share: a NATS server, the process, a model that is scripted, and a trial's reports. */
import http from "node:http";
import path from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  CONSUMERS,
  type Content,
  KV_BUCKETS,
  LaunchWorkSchema,
  OBJECT_BUCKETS,
  type RunOnceRequest,
  type RunOnceRequestSchema,
  type RunOnceResponse,
  type SandboxReport,
  SandboxReportSchema,
  SandboxService,
  STREAMS,
  subject,
} from "@mortise/contracts";
import { type Bus, type Client, connectBus, createLog, ensureTopology, rpcClient } from "@mortise/kernel";
import { taskDigest } from "@mortise/tasks";
import { type NatsFixture, startNats } from "@mortise/testkit";
import { ManagerProcess, type ManagerSite } from "./manager-process.js";

export const RUN = "r1";
export const FIXTURES = path.join(import.meta.dirname, "fixtures");
export const TASK = {
  id: "add-numbers",
  digest: taskDigest(path.join(FIXTURES, "tasks/add-numbers")),
};

type OnceRequest = Exclude<MessageInitShape<typeof RunOnceRequestSchema>, RunOnceRequest>;

export class ManagerWorld {
  readonly nats: NatsFixture;
  readonly bus: Bus;
  readonly manager: ManagerProcess;
  readonly model: FakeModel;
  /** Every report, in the order of the stream. */
  readonly watched: SandboxReport[] = [];
  client!: Client<typeof SandboxService>;
  readonly #arrived = new Set<() => void>();
  #serial = 0;

  private constructor(nats: NatsFixture, bus: Bus, manager: ManagerProcess, model: FakeModel) {
    this.nats = nats;
    this.bus = bus;
    this.manager = manager;
    this.model = model;
  }

  static async start(
    site: Omit<ManagerSite, "harness" | "tasks"> & Partial<ManagerSite>,
  ): Promise<ManagerWorld> {
    const nats = await startNats({ withUsers: true });
    const { user, password } = nats.identity("admin");
    const log = createLog({ service: "test", level: "error" });
    const bus = await connectBus({
      url: nats.url,
      user,
      password,
      name: "test",
      log,
      onFault: console.error,
    });
    await ensureTopology(bus, {
      streams: STREAMS,
      consumers: CONSUMERS,
      kv: KV_BUCKETS,
      objects: OBJECT_BUCKETS,
    });
    const manager = new ManagerProcess(nats, {
      tasks: path.join(FIXTURES, "tasks"),
      harness: path.join(FIXTURES, "harness"),
      ...site,
    });
    const world = new ManagerWorld(nats, bus, manager, await FakeModel.start());
    await bus.follow({
      stream: "TRIALS",
      filters: [`mortise.v1.trial.${RUN}.*.sandbox`],
      from: "first",
      schema: SandboxReportSchema,
      onMessage: (report) => {
        world.watched.push(report);
        for (const wake of world.#arrived) wake();
      },
    });
    await world.startManager();
    return world;
  }

  async startManager(): Promise<void> {
    await this.manager.start();
    const { bearer } = this.nats.identity("sandbox-manager");
    this.client = rpcClient(SandboxService, this.manager.rpcAddress, { bearer });
  }

  /** As a crash and a restart. */
  async killManager(): Promise<void> {
    this.client.close();
    await this.manager.kill();
  }

  async launch(changes: Record<string, unknown> = {}): Promise<string> {
    const trial = (changes.trial as string | undefined) ?? `trial-${++this.#serial}`;
    await this.bus.publish({
      subject: subject.launch(RUN, trial),
      schema: LaunchWorkSchema,
      message: {
        run: RUN,
        trial,
        group: "g1",
        task: TASK,
        harness: "scripted",
        modelAddress: this.model.address,
        sessionToken: `secret-of-${trial}`,
        model: "policy",
        agentTimeoutMs: 20_000,
        ...changes,
      },
      dedupeId: `${trial}/launch/${Math.random()}`,
    });
    return trial;
  }

  /** Resolves with the first report of a trial that is of one of these kinds. */
  async report(trial: string, ...kinds: ("prepared" | "ended" | "failed")[]): Promise<SandboxReport> {
    for (;;) {
      const found = this.watched.find(
        (candidate) => candidate.trial === trial && kinds.some((kind) => kind === candidate.fact.case),
      );
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#arrived.delete(wake);
          resolve();
        };
        this.#arrived.add(wake);
      });
    }
  }

  reportsOf(trial: string): SandboxReport[] {
    return this.watched.filter((report) => report.trial === trial);
  }

  async started(changes: Record<string, unknown> = {}): Promise<{ trial: string; lease: string }> {
    const trial = await this.launch(changes);
    const { lease, fact } = await this.report(trial, "prepared", "failed");
    if (fact.case === "failed") throw new Error(`${fact.value.code}: ${fact.value.reason}`);
    await this.client.startAgent({ run: RUN, trial, lease });
    return { trial, lease };
  }

  async ended(trial: string) {
    const { fact } = await this.report(trial, "ended", "failed");
    if (fact.case === "failed") throw new Error(`${fact.value.code}: ${fact.value.reason}`);
    return fact.case === "ended" ? fact.value : undefined!;
  }

  /** Runs the hidden tests in a fresh sandbox, or what is asked instead, over what is asked besides. */
  runOnce(request: OnceRequest = {}): Promise<RunOnceResponse> {
    return this.client.runOnce({
      run: RUN,
      trial: "verify",
      task: TASK,
      argv: ["/bin/sh", "/tests/test.sh"],
      withTests: true,
      stdin: Buffer.from("nonce-1\n"),
      ...request,
    });
  }

  /** What the hidden tests say: `passed` or `failed`. */
  async grade(request: OnceRequest = {}): Promise<string> {
    const { failureReason, stdout } = await this.runOnce(request);
    if (failureReason !== "") throw new Error(failureReason);
    return (JSON.parse(Buffer.from(stdout).toString()) as { status: string }).status;
  }

  /** Work that is not done. */
  async queued(): Promise<number> {
    return (await this.bus.manager.streams.info("WORK")).state.messages;
  }

  async stop(): Promise<void> {
    this.client?.close();
    await this.manager.stop();
    await this.model.stop();
    await this.bus.close();
    await this.nats.stop();
  }
}

/** A model server that gives one scripted reply; the only party a harness can talk to. */
export class FakeModel {
  reply: object = {};
  requests: { authorization: string; body: Record<string, unknown> }[] = [];
  readonly #server: http.Server;

  private constructor(server: http.Server) {
    this.#server = server;
  }

  static async start(): Promise<FakeModel> {
    const server = http.createServer();
    const model = new FakeModel(server);
    server.on("request", async (request, response) => {
      let text = "";
      for await (const chunk of request) text += chunk;
      model.requests.push({ authorization: request.headers.authorization ?? "", body: JSON.parse(text) });
      response.end(JSON.stringify(model.reply));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return model;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  reset(): void {
    this.reply = {};
    this.requests = [];
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** An address where nothing listens. */
export async function closedAddress(): Promise<string> {
  const model = await FakeModel.start();
  const { address } = model;
  await model.stop();
  return address;
}

export function inlineOf(content: Content | undefined): Uint8Array {
  if (content?.place.case !== "inline") throw new Error("the content is not inline");
  return content.place.value;
}
