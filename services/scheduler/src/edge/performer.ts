/**
 * Owns carrying out the run's effects: transitions to the journal, work and records to the bus, questions to
 * peers. Answers go back as messages. Decides nothing.
 *
 * E1  Work and questions about a trial leave after the transition that explains them is stored (J2). A retry is
 *     opened after the last transition of the trial it repeats, and the record of a group or an evaluation leaves
 *     after the last transitions of its trials: the log never holds an effect without its cause.
 *     Records of groups leave one after the other, in the order they were decided: their places were counted on.
 * E2  Every publish has the id of its fact: launch, verify, group, evaluation and phase are stored once.
 */
import type { DescMessage } from "@bufbuild/protobuf";
import {
  GroupRecordSchema,
  LaunchWorkSchema,
  MetricsRecordSchema,
  MortiseError,
  type RunConfig,
  subject,
  TrialState,
  VerifyWorkSchema,
} from "@mortise/contracts";
import {
  type Bus,
  backoff,
  type Clock,
  dispositionOf,
  type Log,
  type PublishOptions,
  sleep,
  withTrace,
} from "@mortise/kernel";
import type { Effect } from "../run/effects.js";
import type { RunMessage } from "../run/messages.js";
import type { Trial } from "../trial/trial.js";
import type { Deadlines } from "./deadlines.js";
import type { Journal } from "./journal.js";
import { launchMessage, verifyMessage } from "./launch-message.js";
import type { Sandboxes } from "./sandboxes.js";
import type { SchedulerMetrics } from "./scheduler-metrics.js";
import type { Sessions } from "./sessions.js";
import { transitionOf } from "./transition.js";

export interface PerformerOptions {
  readonly config: RunConfig;
  readonly fence: bigint;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly journal: Journal;
  readonly sessions: Sessions;
  readonly sandboxes: Sandboxes;
  readonly deadlines: Deadlines;
  readonly metrics: SchedulerMetrics;
  /** When the current phase began, if the log knows. */
  readonly phaseAtMs?: number;
}

type Send = (message: RunMessage) => void;
const RETRY = { baseMs: 200, maxMs: 5_000 };

export class Performer {
  readonly #o: PerformerOptions;
  #phaseAtMs: number;
  /** Phases are stored in the order they were entered. */
  #phases: Promise<void> = Promise.resolve();
  #groups: Promise<void> = Promise.resolve();

  constructor(options: PerformerOptions) {
    this.#o = options;
    this.#phaseAtMs = options.phaseAtMs ?? options.clock.now();
  }

  /** Carries out one effect. Rejects only for what waiting does not cure. */
  async perform(effect: Effect, send: Send): Promise<void> {
    switch (effect.kind) {
      case "record":
        return this.#record(effect);
      case "watch":
        return this.#o.deadlines.watch(effect.trial, effect.stage, effect.ms);
      case "open":
        await this.#o.journal.settled(effect.trial.retryOf); // E1
        return answer(await this.#o.sessions.open(effect.trial), send);
      case "seal":
        return answer(await this.#o.sessions.seal(effect.trial), send);
      case "launch":
        return this.#launch(effect);
      case "start-agent":
        await this.#o.journal.settled(effect.trial.id); // E1
        return answer(await this.#o.sandboxes.startAgent(effect.trial), send);
      case "cancel-sandbox":
        return this.#o.sandboxes.cancel(effect.trial, effect.reason);
      case "verify":
        return this.#verify(effect.trial);
      case "publish-group":
        this.#groups = this.#groups.then(() => this.#publishGroup(effect)); // E1
        return this.#groups;
      case "publish-evaluation":
        await this.#publishEvaluation(effect);
        return send({ kind: "evaluation-stored", name: effect.record.name });
      case "publish-phase":
        this.#phases = this.#phases.then(() => this.#publishPhase(effect));
        return this.#phases;
    }
  }

  #record(effect: Extract<Effect, { kind: "record" }>): void {
    const { journal, deadlines, metrics, log, config, clock } = this.#o;
    journal.append(transitionOf(effect, clock.now()));
    if (effect.state !== TrialState.CLOSED) return;
    deadlines.forget(effect.trial.id);
    metrics.closed(effect.trial, effect.closing!);
    log.info(closingEvent(config.run.id, effect));
  }

  async #launch({ trial, grant }: Extract<Effect, { kind: "launch" }>): Promise<void> {
    const { config, journal } = this.#o;
    await journal.settled(trial.id); // E1
    await this.#publish(trial, {
      subject: subject.launch(config.run.id, trial.id),
      schema: LaunchWorkSchema,
      dedupeId: `${config.run.id}/${trial.id}/launch`,
      message: launchMessage(config, trial, grant),
    });
  }

  async #verify(trial: Trial): Promise<void> {
    const { config, journal } = this.#o;
    const { id } = config.run;
    await journal.settled(trial.id); // E1
    await this.#publish(trial, {
      subject: subject.verify(id, trial.id),
      schema: VerifyWorkSchema,
      dedupeId: `${id}/${trial.id}/verify`,
      message: verifyMessage(config, trial),
    });
  }

  async #publishGroup(effect: Extract<Effect, { kind: "publish-group" }>): Promise<void> {
    const { config, fence, metrics, log } = this.#o;
    const { record, trials } = effect;
    await this.#settled(trials); // E1
    try {
      await this.#persist({
        subject: subject.group(config.run.id, record.group),
        schema: GroupRecordSchema,
        message: { ...record, fence },
        dedupeId: `${config.run.id}/${record.group}`,
        expectLastSubjectSequence: 0,
      });
    } catch (error) {
      if (!isConflict(error)) throw error;
      // Decided by a scheduler that had just lost the lease: that decision stands, groups are decided once.
      log.warn({ event: "group.decided-before", group: record.group });
    }
    metrics.decided(record);
  }

  async #publishEvaluation(effect: Extract<Effect, { kind: "publish-evaluation" }>): Promise<void> {
    const { config, clock } = this.#o;
    const { record, trials } = effect;
    await this.#settled(trials); // E1
    const atMs = clock.now();
    const { protocol } = config.evaluation;
    const value = {
      ...record,
      atMs: BigInt(atMs),
      wallMs: atMs - this.#phaseAtMs,
      protocol: protocol === undefined ? "" : JSON.stringify(protocol),
    };
    await this.#persist({
      subject: subject.evaluation(config.run.id, record.name),
      schema: MetricsRecordSchema,
      message: { record: { case: "evaluation", value } },
      dedupeId: `${config.run.id}/evaluation/${record.name}`,
    });
  }

  async #publishPhase({ phase }: Extract<Effect, { kind: "publish-phase" }>): Promise<void> {
    const { config, clock, log } = this.#o;
    const run = config.run.id;
    this.#phaseAtMs = clock.now();
    log.info({ event: "run.phase", run, phase });
    await this.#persist({
      subject: subject.phase(run),
      schema: MetricsRecordSchema,
      message: { record: { case: "phase", value: { run, phase, atMs: BigInt(this.#phaseAtMs) } } },
      dedupeId: `${run}/phase/${phase}`,
    });
  }

  async #settled(trials: readonly string[]): Promise<void> {
    await Promise.all(trials.map((trial) => this.#o.journal.settled(trial)));
  }

  #publish<D extends DescMessage>(trial: Trial, message: PublishOptions<D>): Promise<void> {
    return withTrace(`${this.#o.config.run.id}/${trial.id}`, () => this.#persist(message));
  }

  /** Publishes until the stream takes it; rejects for what waiting does not cure. */
  async #persist<D extends DescMessage>(message: PublishOptions<D>): Promise<void> {
    const { bus, clock, signal, log } = this.#o;
    for (let attempt = 0; ; attempt++) {
      try {
        await bus.publish(message);
        return;
      } catch (error) {
        if (dispositionOf(error) !== "retry" || signal.aborted) throw error;
        log.warn({ event: "publish.delayed", subject: message.subject, err: error });
      }
      await sleep(backoff(attempt, RETRY), clock, signal);
    }
  }
}

function answer(message: RunMessage | undefined, send: Send): void {
  if (message !== undefined) send(message);
}

function isConflict(error: unknown): boolean {
  return error instanceof MortiseError && error.code === "MORTISE_TRANSPORT_SEQUENCE_CONFLICT";
}

/** The one wide log line of a trial. */
function closingEvent(run: string, { trial, closing }: Extract<Effect, { kind: "record" }>): object {
  const { seal } = trial;
  return {
    event: "trial.closed",
    run,
    trial: trial.id,
    group: trial.group,
    task: trial.task.id,
    retry: trial.retry,
    evaluation: trial.isEvaluation,
    termination: closing?.termination,
    outcome: closing?.outcome,
    reward: closing?.reward,
    reason: trial.reason,
    turns: seal?.turns.length,
    sampledTokens: seal === undefined ? undefined : Number(seal.sampledTokens),
    lowestVersion: seal?.lowestVersion === undefined ? undefined : Number(seal.lowestVersion),
    ms: Object.fromEntries(trial.stageTimes.map(({ stage, wallMs }) => [stage, Math.round(wallMs)])),
  };
}
