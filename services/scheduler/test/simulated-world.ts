/**
 * Owns a world around the run reducer without I/O: services that answer its effects in any order, fail, repeat
 * themselves, and a scheduler that may crash between any two events. What a crash keeps is what streams would hold.
 * The services are simulated; the reducer, the recovery and the log format are the real ones.
 */
import { create } from "@bufbuild/protobuf";
import {
  GroupDisposition,
  type GroupRecord,
  GroupRecordSchema,
  MemberDisposition,
  Outcome,
  RunConfig,
  RunPhase,
  SessionSealedSchema,
  StepRecordSchema,
  TerminationReason,
  TrialState,
  type TrialTransition,
  TrialTransitionSchema,
  VerdictSchema,
} from "@mortise/contracts";
import { transitionOf } from "../src/edge/transition.js";
import { restore } from "../src/recovery/restore.js";
import { TrialLog } from "../src/recovery/trial-log.js";
import type { Effect } from "../src/run/effects.js";
import type { RunMessage, TrialFact } from "../src/run/messages.js";
import { type RunPlan, runPlan } from "../src/run/plan.js";
import { runReducer } from "../src/run/reducer.js";
import { initialRunState, type RunState } from "../src/run/state.js";
import type { Trial } from "../src/trial/trial.js";

export interface WorldOptions {
  readonly seed: number;
  readonly failureRate?: number;
  readonly crashRate?: number;
  readonly duplicateRate?: number;
  readonly deadlineRate?: number;
  /** Turns before which the scheduler crashes, beside those of `crashRate`. */
  readonly crashesAt?: readonly number[];
  /** Engines swap weights some time after they were published; otherwise with the publication. */
  readonly enginesLag?: boolean;
  readonly config?: object;
}

type Ask = Exclude<Effect, { kind: "record" | "watch" }>;

/** A small seeded generator (mulberry32), so that a failing case is one number. */
export function random(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export const tasks = (split: string, n: number) =>
  Array.from({ length: n }, (_, i) => ({ id: `${split}-${i}`, digest: "0".repeat(64) }));

export function testPlan(config: object = {}): RunPlan {
  const base = {
    run: { id: "r1", seed: 7 },
    policy: { checkpoint: "/none" },
    rollout: { groupSize: 3, slots: 3, warm: 2, maxRetries: 2 },
    trainer: { steps: 3, groupsPerStep: 2 },
    evaluation: { attempts: 5 },
    async: { maxStaleness: 1 },
    ...config,
  };
  return runPlan(RunConfig.parse(base), { train: tasks("train", 5), evaluate: tasks("heldout", 3) });
}

export class SimulatedWorld {
  readonly plan: RunPlan;
  readonly #random: () => number;
  readonly #o: Required<Omit<WorldOptions, "config">>;
  state: RunState = initialRunState;
  #reduce;
  #asks: Ask[] = [];
  #watches: Extract<Effect, { kind: "watch" }>[] = [];
  #heard: RunMessage[] = [];
  /** Appends not yet stored, in order per trial. */
  #unstored = new Map<string, TrialTransition[]>();
  // What the streams hold.
  readonly stored: TrialTransition[] = [];
  readonly groups: GroupRecord[] = [];
  readonly evaluations = new Map<string, Extract<Effect, { kind: "publish-evaluation" }>["record"]>();
  readonly phases: RunPhase[] = [];
  readonly #reports = new Map<string, TrialFact[]>();
  readonly #verdicts = new Map<string, TrialFact>();
  readonly #seals = new Map<string, Extract<TrialFact, { kind: "sealed" }>>();
  readonly #steps: RunMessage[] = [];
  /** Version the engine had when a trial was launched first: the oldest it can sample from. */
  readonly #launchedUnder = new Map<string, number>();
  #nTurns = 0;
  version = -1;
  /** What engines sample from: they serve once they have the first weights. */
  engineVersion = 0;
  #acknowledged = -1;
  /** Trained members that were too old for the step that took them, as `<step> <trial>`. */
  readonly overdue: string[] = [];
  crashes = 0;
  maxRunning = 0;
  /** Called after every reduction. */
  check: () => void = () => {};

  constructor(options: WorldOptions) {
    const calm = { failureRate: 0, crashRate: 0, duplicateRate: 0, deadlineRate: 0 };
    this.#o = { ...calm, crashesAt: [], enginesLag: false, ...options };
    this.#random = random(options.seed);
    this.plan = testPlan(options.config);
    this.#reduce = runReducer(this.plan);
    this.#send({ kind: "reconciled" });
  }

  /** One event: an answer, a repetition, a deadline, a step of the trainer, or a crash. */
  turn(): void {
    const dice = this.#random();
    if (this.#o.crashesAt.includes(this.#nTurns++) || dice < this.#o.crashRate) this.#crash();
    else if (dice < this.#o.crashRate + this.#o.duplicateRate && this.#heard.length > 0) {
      this.#send(pick(this.#heard, this.#random()));
    } else if (this.#watches.length > 0 && this.#random() < this.#o.deadlineRate) {
      const { trial, stage } = pick(this.#watches, this.#random());
      this.#send({ kind: "trial", trial, fact: { kind: "deadline", stage } });
    } else {
      const actions = [...this.#answers(), ...this.#stores(), ...this.#training(), ...this.#swapping()];
      if (actions.length > 0) pick(actions, this.#random())();
    }
  }

  /** Turns until the run has finished and everything is stored; throws when it takes too long. */
  finish(limit = 60_000): void {
    for (let i = 0; i < limit; i++) {
      if (this.state.phase === RunPhase.FINISHED && this.#asks.length === 0 && this.#unstored.size === 0)
        return;
      this.turn();
    }
    throw new Error(
      `the run did not finish: phase ${this.state.phase}, ${this.state.trials.size} live trials`,
    );
  }

  drain(): void {
    this.#send({ kind: "drain", cancelRunning: true });
  }

  send(message: RunMessage): void {
    this.#send(message);
  }

  crash(): void {
    this.#crash();
  }

  #send(message: RunMessage): void {
    if (mayRepeat(message)) this.#heard.push(message);
    const { state, effects } = this.#reduce(this.state, message);
    this.state = state;
    for (const effect of effects) this.#take(effect);
    const running = [...state.trials.values()].filter(({ stage }) => stage === "running").length;
    this.maxRunning = Math.max(this.maxRunning, running);
    this.check();
  }

  #take(effect: Effect): void {
    if (effect.kind === "watch") {
      this.#watches = [...this.#watches.filter(({ trial }) => trial !== effect.trial), effect];
    } else if (effect.kind === "record") {
      const queue = this.#unstored.get(effect.trial.id) ?? [];
      this.#unstored.set(effect.trial.id, queue);
      queue.push(
        create(TrialTransitionSchema, { ...transitionOf(effect, 0), run: this.plan.run, fence: 1n }),
      );
    } else if (effect.kind !== "cancel-sandbox") {
      this.#asks.push(effect);
    }
  }

  #stores(): (() => void)[] {
    return [...this.#unstored].map(([trial, queue]) => () => {
      this.stored.push(queue.shift()!);
      if (queue.length === 0) this.#unstored.delete(trial);
    });
  }

  #answers(): (() => void)[] {
    return this.#asks
      .filter((ask) => this.#isReady(ask))
      .map((ask) => () => {
        this.#asks.splice(this.#asks.indexOf(ask), 1);
        this.#answer(ask);
      });
  }

  /** E1 and J2 of the edge: asks wait for the log. */
  #isReady(ask: Ask): boolean {
    const isStored = (trial: string) => !this.#unstored.has(trial);
    // Groups are published one after the other, and so are phases.
    if (ask.kind === "publish-group") return this.#isFirst(ask) && ask.trials.every(isStored);
    if (ask.kind === "publish-evaluation") return ask.trials.every(isStored);
    if (ask.kind === "open") return !this.#unstored.has(ask.trial.retryOf);
    if (ask.kind === "launch" || ask.kind === "verify" || ask.kind === "start-agent")
      return !this.#unstored.has(ask.trial.id);
    if (ask.kind === "publish-phase") return this.#isFirst(ask);
    return true;
  }

  #isFirst(ask: Ask): boolean {
    return ask === this.#asks.find(({ kind }) => kind === ask.kind);
  }

  #answer(ask: Ask): void {
    switch (ask.kind) {
      case "open": {
        const grant = { token: "t", modelAddress: "m", model: "policy", listenerKey: "k" };
        const fact = { kind: "opened", session: ask.trial.id, proxyAddress: "p", grant } as const;
        this.#send({ kind: "trial", trial: ask.trial.id, fact });
        return;
      }
      case "launch":
        if (!this.#launchedUnder.has(ask.trial.id)) this.#launchedUnder.set(ask.trial.id, this.engineVersion);
        this.#report(ask.trial, 0, () =>
          this.#fails(ask.trial)
            ? { kind: "failed", termination: TerminationReason.SETUP_FAILED, reason: "setup", stages: [] }
            : { kind: "prepared", address: "s", lease: ask.trial.id },
        );
        return;
      case "start-agent":
        this.#report(ask.trial, 1, () =>
          this.#fails(ask.trial)
            ? { kind: "failed", termination: TerminationReason.SANDBOX_LOST, reason: "lost", stages: [] }
            : { kind: "ended", termination: TerminationReason.COMPLETED, stages: [] },
        );
        return;
      case "seal":
        this.#send({ kind: "trial", trial: ask.trial.id, fact: this.#sealOf(ask.trial) });
        return;
      case "verify":
        this.#verify(ask.trial);
        return;
      case "publish-group":
        if (!this.groups.some(({ group }) => group === ask.record.group))
          this.groups.push(create(GroupRecordSchema, ask.record));
        return;
      case "publish-evaluation":
        this.evaluations.set(ask.record.name, ask.record);
        this.#send({ kind: "evaluation-stored", name: ask.record.name });
        return;
      case "publish-phase":
        if (!this.phases.includes(ask.phase)) this.phases.push(ask.phase);
        return;
    }
  }

  #fails(_: Trial): boolean {
    return this.#random() < this.#o.failureRate;
  }

  /** The n-th report of a trial is made once, however often it is asked for. */
  #report(trial: Trial, n: number, make: () => TrialFact): void {
    const reports = this.#reports.get(trial.id) ?? [];
    this.#reports.set(trial.id, reports);
    if (reports.length <= n && !reports.some(({ kind }) => kind === "failed")) reports.push(make());
    this.#send({ kind: "trial", trial: trial.id, fact: reports.at(-1)! });
  }

  #sealOf(trial: Trial): Extract<TrialFact, { kind: "sealed" }> {
    const known = this.#seals.get(trial.id);
    if (known !== undefined) return known;
    const ran = (this.#reports.get(trial.id) ?? []).some(({ kind }) => kind === "ended" || kind === "failed");
    const seal = create(SessionSealedSchema, {
      run: this.plan.run,
      trial: trial.id,
      ...(ran
        ? {
            sampledTokens: 3n,
            lowestVersion: BigInt(this.#launchedUnder.get(trial.id) ?? this.engineVersion),
            highestVersion: BigInt(this.engineVersion),
            turns: [{ turn: "0", sequence: BigInt(this.#seals.size + 1), sampledTokens: 3 }],
          }
        : {}),
    });
    const fact = { kind: "sealed", seal, sequence: BigInt(1000 + this.#seals.size) } as const;
    this.#seals.set(trial.id, fact);
    return fact;
  }

  #verify(trial: Trial): void {
    const verdict =
      this.#verdicts.get(trial.id) ??
      ({
        kind: "judged",
        verdict: create(VerdictSchema, {
          trial: trial.id,
          ...(this.#fails(trial)
            ? { outcome: Outcome.INVALID_INFRA }
            : this.#random() < 0.5
              ? { outcome: Outcome.RESOLVED, reward: 1 }
              : { outcome: Outcome.UNRESOLVED, reward: 0 }),
        }),
      } as const);
    this.#verdicts.set(trial.id, verdict);
    this.#send({ kind: "trial", trial: trial.id, fact: verdict });
  }

  /** The trainer: version 0, then a step whenever enough groups are decided. */
  #training(): (() => void)[] {
    const { groupsPerStep, steps } = this.plan;
    const usable = this.groups.filter(
      ({ disposition }) => !this.plan.refillDropped || disposition === GroupDisposition.ADMITTED,
    );
    const isPossible =
      this.version < steps && (this.version < 0 || usable.length >= (this.version + 1) * groupsPerStep);
    if (!isPossible) return [];
    return [
      () => {
        this.version++;
        const consumed = usable.slice((this.version - 1) * groupsPerStep, this.version * groupsPerStep);
        this.#send({ kind: "weights", version: this.version });
        if (!this.#o.enginesLag) this.#swap();
        if (this.version === 0) return;
        for (const group of consumed) this.#note(group);
        const groups = consumed.map(({ group }) => group);
        const record = create(StepRecordSchema, {
          step: BigInt(this.version),
          version: BigInt(this.version),
          groups,
        });
        const step: RunMessage = { kind: "step", record };
        this.#steps.push(step);
        this.#send(step);
      },
    ];
  }

  /** The trainer consumes in the order of the stream, and says what was too old at that step. */
  #note({ members, disposition }: GroupRecord): void {
    if (disposition !== GroupDisposition.ADMITTED) return;
    for (const { trial, lowestVersion, disposition } of members) {
      if (disposition !== MemberDisposition.TRAIN || lowestVersion === undefined) continue;
      const age = this.version - 1 - Number(lowestVersion);
      if (age > this.plan.maxStaleness) this.overdue.push(`${this.version} ${trial}`);
    }
  }

  #swapping(): (() => void)[] {
    return this.#acknowledged < this.version ? [() => this.#swap()] : [];
  }

  #swap(): void {
    this.engineVersion = this.version;
    this.#acknowledged = this.version;
    this.#send({ kind: "receipt", version: this.version });
  }

  /** Loses everything but the streams; of the appends under way each trial keeps a prefix. */
  #crash(): void {
    this.crashes++;
    for (const queue of this.#unstored.values()) {
      const kept = Math.floor(this.#random() * (queue.length + 1));
      this.stored.push(...queue.slice(0, kept));
    }
    this.#unstored = new Map();
    this.#asks = [];
    this.#watches = [];
    this.#heard = [];
    const log = new TrialLog();
    for (const [i, transition] of this.stored.entries()) log.add(transition, i + 1);
    this.state = restore(this.plan, {
      trials: log.trials,
      groups: this.groups,
      evaluations: [...this.evaluations.keys()],
      phase: this.phases.reduce((a, b) => Math.max(a, b), RunPhase.UNSPECIFIED),
    });
    if (this.version >= 0) {
      this.#send({ kind: "weights", version: this.version });
      if (this.#acknowledged >= 0) this.#send({ kind: "receipt", version: this.#acknowledged });
    }
    for (const step of this.#steps) this.#send(step);
    for (const [trial, facts] of this.#reports)
      for (const fact of facts) this.#send({ kind: "trial", trial, fact });
    for (const [trial, fact] of this.#verdicts) this.#send({ kind: "trial", trial, fact });
    this.#send({ kind: "reconciled" });
  }
}

/** What streams and watches deliver may come again; an answer to a call and the end of the replay come once. */
function mayRepeat(message: RunMessage): boolean {
  if (message.kind === "trial") return message.fact.kind !== "opened";
  return message.kind !== "reconciled" && message.kind !== "drain";
}

export function closedCount(stored: readonly TrialTransition[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { trial, state } of stored) {
    if (state === TrialState.CLOSED) counts.set(trial, (counts.get(trial) ?? 0) + 1);
  }
  return counts;
}

function pick<T>(from: readonly T[], at: number): T {
  return from[Math.floor(at * from.length)]!;
}
