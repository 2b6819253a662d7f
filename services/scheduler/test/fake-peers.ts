/**
 * Owns fake peers of the scheduler that speak the real protocol on a real bus: a proxy, a sandbox-manager and a
 * verifier without models or sandboxes, and a trainer that only advances versions. What they say is made up; that
 * they say it the way the services do is the point.
 */
import { create, toBinary } from "@bufbuild/protobuf";
import {
  CaptureRecordSchema,
  type ErrorCode,
  ExclusionReason,
  filter,
  type GroupRecord,
  GroupRecordSchema,
  type LaunchWork,
  LaunchWorkSchema,
  MemberDisposition,
  MetricsRecordSchema,
  MortiseError,
  Outcome,
  ProxyService,
  type SandboxReport,
  SandboxReportSchema,
  SandboxService,
  type SealSessionResponse,
  SealSessionResponseSchema,
  type SessionSealed,
  subject,
  TerminationReason,
  VerdictSchema,
  VerifyWorkSchema,
  WeightsManifestSchema,
  WeightsRecordSchema,
} from "@mortise/contracts";
import { type Bus, type Consuming, type Following, implement, RpcServer, sleep } from "@mortise/kernel";

export interface FakeOptions {
  readonly bus: Bus;
  readonly bearer: string;
  readonly run: string;
}

/** Announces a fake as the kernel announces a service. */
async function announce(bus: Bus, service: string, rpcAddress: string): Promise<() => Promise<void>> {
  const kv = await bus.kv("presence");
  const entry = { service, instance: "fake", rpcAddress, httpAddress: "", pid: 0, startedAt: 0, facts: {} };
  const put = () => kv.put(`${service}.fake`, new TextEncoder().encode(JSON.stringify(entry)));
  await put();
  const timer = setInterval(() => void put(), 2_000);
  return async () => {
    clearInterval(timer);
    await kv.delete(`${service}.fake`);
  };
}

/** Opens sessions; at the seal it journals one made-up turn of three tokens and the seal itself. */
export class FakeProxy {
  readonly opened = new Map<string, { version: number; rngKey: string }>();
  readonly #o: FakeOptions;
  readonly #seals = new Map<string, Promise<SealSessionResponse>>();
  version = 0;
  #server: RpcServer | undefined;
  #withdraw: () => Promise<void> = async () => {};

  constructor(options: FakeOptions) {
    this.#o = options;
  }

  async start(): Promise<void> {
    const binding = implement(ProxyService, {
      openSession: async ({ trial, rngKey }) => {
        // Asked again after a restart, before its agent can have sampled anything.
        this.opened.set(trial, { version: this.version, rngKey });
        return { session: trial, token: `token-${trial}`, modelAddress: "127.0.0.1:1", model: "policy" };
      },
      sealSession: async ({ trial }) => {
        const seal = this.#seals.get(trial) ?? this.#seal(trial);
        this.#seals.set(trial, seal);
        return seal;
      },
      getProxyStatus: async () => ({}),
    });
    const { bearer } = this.#o;
    this.#server = await RpcServer.start({ host: "127.0.0.1", port: 0, bearer, bindings: [binding] });
    this.#withdraw = await announce(this.#o.bus, "proxy", `127.0.0.1:${this.#server.port}`);
  }

  async stop(): Promise<void> {
    await this.#withdraw();
    await this.#server?.stop();
  }

  async #seal(trial: string): Promise<SealSessionResponse> {
    const { bus, run } = this.#o;
    const version = BigInt(this.opened.get(trial)?.version ?? 0);
    const append = (record: Parameters<typeof create<typeof CaptureRecordSchema>>[1], id: string) =>
      bus.publish({
        subject: subject.capture(run, trial),
        schema: CaptureRecordSchema,
        message: create(CaptureRecordSchema, record),
        dedupeId: `${run}/${trial}/${id}`,
      });
    const turn = await append(
      {
        record: {
          case: "turn",
          value: { run, trial, session: trial, turn: "0", spans: [{ length: 3, policyVersion: version }] },
        },
      },
      "0",
    );
    const sealed = {
      run,
      trial,
      session: trial,
      sampledTokens: 3n,
      lastSequence: BigInt(turn.sequence),
      turns: [{ turn: "0", sequence: BigInt(turn.sequence), sampledTokens: 3 }],
      lowestVersion: version,
      highestVersion: version,
      evaluation: !trial.startsWith("g"),
    };
    const stored = await append(
      { record: { case: "sealed", value: sealed as unknown as SessionSealed } },
      "sealed",
    );
    return create(SealSessionResponseSchema, { seal: sealed, sealSequence: BigInt(stored.sequence) });
  }
}

/** Takes launches, reports prepared, ends the agent soon after it is started. */
export class FakeManager {
  readonly launches: string[] = [];
  /** What it was told comes next, every time. */
  readonly prewarmed: string[][] = [];
  running = 0;
  maxRunning = 0;
  /** With which code a trial's setup fails; undefined when it does not. */
  failsSetup: (trial: string) => ErrorCode | undefined = () => undefined;
  /** Trials never reported again once started. */
  isSilent: (trial: string) => boolean = () => false;
  agentMs = 15;
  readonly #o: FakeOptions;
  readonly #held = new Map<string, { start: () => void; cancel: () => void }>();
  #server: RpcServer | undefined;
  #work: Consuming | undefined;
  #withdraw: () => Promise<void> = async () => {};

  constructor(options: FakeOptions) {
    this.#o = options;
  }

  async start(): Promise<void> {
    const binding = implement(SandboxService, {
      startAgent: async ({ trial, lease }) => {
        const held = this.#held.get(trial);
        if (held === undefined || lease !== `lease-${trial}`) {
          throw new MortiseError({ code: "MORTISE_SANDBOX_UNKNOWN_LEASE", message: `no lease for ${trial}` });
        }
        held.start();
        return { started: true };
      },
      cancelTrial: async ({ trial }) => {
        const held = this.#held.get(trial);
        held?.cancel();
        return { cancelled: held !== undefined };
      },
      runOnce: async () => ({}),
      getSandboxStatus: async () => ({}),
      prewarm: async ({ tasks }) => {
        this.prewarmed.push(tasks.map(({ id }) => id));
        return { accepted: tasks.length };
      },
      listKept: async () => ({}),
      execKept: async () => ({}),
      releaseKept: async () => ({}),
    });
    const { bus, bearer } = this.#o;
    this.#server = await RpcServer.start({ host: "127.0.0.1", port: 0, bearer, bindings: [binding] });
    this.#withdraw = await announce(bus, "sandbox-manager", `127.0.0.1:${this.#server.port}`);
    this.#work = await bus.consume({
      stream: "WORK",
      durable: "launch",
      schema: LaunchWorkSchema,
      concurrency: 64,
      handle: (work) => this.#launch(work),
    });
  }

  async stop(): Promise<void> {
    await this.#withdraw();
    await this.#work?.stop(0);
    await this.#server?.stop();
  }

  async #launch(work: LaunchWork): Promise<void> {
    const { trial } = work;
    this.launches.push(trial);
    const code = this.failsSetup(trial);
    if (code !== undefined) {
      const failed = { termination: TerminationReason.SETUP_FAILED, code, reason: "made to fail" };
      return this.#report(trial, "ended", { case: "failed", value: failed as never });
    }
    let isCancelled = false;
    const started = new Promise<void>((start) => {
      const cancel = () => {
        isCancelled = true;
        start();
      };
      this.#held.set(trial, { start, cancel });
    });
    const rpcAddress = `127.0.0.1:${this.#server!.port}`;
    await this.#report(trial, "prepared", { case: "prepared", value: { rpcAddress } as never });
    await started;
    if (isCancelled) return;
    this.maxRunning = Math.max(this.maxRunning, ++this.running);
    if (this.isSilent(trial)) return;
    await sleep(this.agentMs);
    this.running--;
    const patch = { place: { case: "inline", value: new TextEncoder().encode(trial) } };
    const ended = { termination: TerminationReason.COMPLETED, patch };
    await this.#report(trial, "ended", { case: "ended", value: ended as never });
  }

  async #report(trial: string, id: string, fact: SandboxReport["fact"]): Promise<void> {
    const { bus, run } = this.#o;
    await bus.publish({
      subject: subject.trialSandbox(run, trial),
      schema: SandboxReportSchema,
      message: create(SandboxReportSchema, { run, trial, lease: `lease-${trial}`, manager: "fake", fact }),
      dedupeId: `${run}/${trial}/${id}`,
    });
  }
}

/** Judges at once: resolved when the trial's number within its group is even, so that no group is all-equal. */
export class FakeVerifier {
  readonly judged: string[] = [];
  readonly #o: FakeOptions;
  #work: Consuming | undefined;
  #withdraw: () => Promise<void> = async () => {};

  constructor(options: FakeOptions) {
    this.#o = options;
  }

  async start(): Promise<void> {
    const { bus, run } = this.#o;
    this.#withdraw = await announce(bus, "verifier", "127.0.0.1:1");
    this.#work = await bus.consume({
      stream: "WORK",
      durable: "verify",
      schema: VerifyWorkSchema,
      concurrency: 16,
      handle: async ({ trial }) => {
        this.judged.push(trial);
        const isResolved = Number(/-(\d+)(r\d+)?$/.exec(trial)![1]) % 2 === 0;
        const outcome = isResolved ? Outcome.RESOLVED : Outcome.UNRESOLVED;
        await bus.publish({
          subject: subject.reward(run, trial),
          schema: VerdictSchema,
          message: { run, trial, outcome, reward: isResolved ? 1 : 0 },
          dedupeId: `${run}/${trial}/verdict`,
        });
      },
    });
  }

  async stop(): Promise<void> {
    await this.#withdraw();
    await this.#work?.stop(0);
  }
}

/**
 * Advances the version whenever enough groups are decided. Notes the staleness of what it trains, and whose tokens were
 * excluded for it: unlike the real one it refuses nothing.
 */
export class FakeTrainer {
  readonly consumed: string[] = [];
  /** Trials excluded as stale. */
  readonly wasted: string[] = [];
  version = -1;
  maxStaleness = 0;
  /** How long engines go on sampling from the weights before, once new ones are current. */
  swapMs = 0;
  readonly #o: FakeOptions & { steps: number; groupsPerStep: number; proxy: FakeProxy };
  readonly #pending: GroupRecord[] = [];
  #following: Following | undefined;
  #tail: Promise<void> = Promise.resolve();

  constructor(options: FakeOptions & { steps: number; groupsPerStep: number; proxy: FakeProxy }) {
    this.#o = options;
  }

  async start(): Promise<void> {
    await this.#publish(0);
    this.#following = await this.#o.bus.follow({
      stream: "GROUPS",
      filters: [filter.groups(this.#o.run)],
      from: "first",
      schema: GroupRecordSchema,
      onMessage: (group) => {
        this.#pending.push(group);
        this.#tail = this.#tail.then(() => this.#step());
      },
    });
  }

  async stop(): Promise<void> {
    await this.#following?.stop();
    await this.#tail;
  }

  async #step(): Promise<void> {
    const { groupsPerStep, steps, bus, run } = this.#o;
    if (this.#pending.length < groupsPerStep || this.version >= steps) return;
    const batch = this.#pending.splice(0, groupsPerStep);
    const step = this.version + 1;
    for (const { group, members } of batch) {
      this.consumed.push(group);
      for (const { trial, lowestVersion, disposition, exclusion } of members) {
        if (exclusion === ExclusionReason.STALE) this.wasted.push(trial);
        if (disposition !== MemberDisposition.TRAIN) continue;
        this.maxStaleness = Math.max(this.maxStaleness, step - 1 - Number(lowestVersion ?? step - 1));
      }
    }
    await this.#publish(step);
    const value = { run, step: BigInt(step), version: BigInt(step), groups: batch.map(({ group }) => group) };
    await bus.publish({
      subject: subject.step(run, step),
      schema: MetricsRecordSchema,
      message: { record: { case: "step", value } },
      dedupeId: `${run}/step/${step}`,
    });
  }

  async #publish(version: number): Promise<void> {
    const { bus, run, proxy } = this.#o;
    const manifest = create(WeightsManifestSchema, { run, version: BigInt(version) });
    await (await bus.kv("weights")).put(run, toBinary(WeightsManifestSchema, manifest));
    this.version = version;
    await sleep(this.swapMs);
    proxy.version = version;
    await bus.publish({
      subject: subject.receipt(run, "engine"),
      schema: WeightsRecordSchema,
      message: { record: { case: "receipt", value: { run, version: BigInt(version), engine: "engine" } } },
      dedupeId: `${run}/receipt/${version}`,
    });
  }
}
