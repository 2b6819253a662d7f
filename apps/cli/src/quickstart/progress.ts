/**
 * Owns what is known of a running run at a glance: its phase, the forming step, the last numbers. Records come
 * from the METRICS stream; counts are asked of the scheduler and the trainer, because they change all the time.
 * Does not draw (view.ts) and does not report (summary.ts).
 */
import {
  type EvaluationRecord,
  filter,
  type GetRunStatusResponse,
  type GetTrainerStatusResponse,
  MetricsRecordSchema,
  RunPhase,
  SchedulerService,
  type StepRecord,
  TrainerService,
} from "@mortise/contracts";
import { type Bus, type Client, rpcClient, type ServicePresence } from "@mortise/kernel";
import type { Presences } from "../site/processes/presences.js";

/** Asking must not hold up the view: a busy service is asked again a second later. */
const ASK_DEADLINE_MS = 2_000;

export interface Progress {
  readonly phase: RunPhase;
  readonly run: GetRunStatusResponse | undefined;
  readonly trainer: GetTrainerStatusResponse | undefined;
  readonly lastStep: StepRecord | undefined;
  readonly evaluations: readonly EvaluationRecord[];
  /** When each phase began, epoch milliseconds. */
  readonly phaseStartedAt: ReadonlyMap<RunPhase, number>;
}

/** What is needed to look at a run: the bus, who is live, and the bearer to ask them. */
export interface Lookout {
  readonly bus: Bus;
  readonly presences: Presences;
  readonly bearer: string;
}

type Asked = typeof SchedulerService | typeof TrainerService;

export class ProgressWatch {
  readonly #lookout: Lookout;
  readonly #finished = Promise.withResolvers<void>();
  readonly #clients = new Map<string, { address: string; client: Client<Asked> }>();
  #following: { stop(): Promise<void> } | undefined;
  #progress: Progress = {
    phase: RunPhase.UNSPECIFIED,
    run: undefined,
    trainer: undefined,
    lastStep: undefined,
    evaluations: [],
    phaseStartedAt: new Map(),
  };

  private constructor(lookout: Lookout) {
    this.#lookout = lookout;
  }

  static async start(lookout: Lookout, run: string): Promise<ProgressWatch> {
    const watch = new ProgressWatch(lookout);
    watch.#following = await lookout.bus.follow({
      stream: "METRICS",
      filters: [filter.metrics(run)],
      from: "first",
      schema: MetricsRecordSchema,
      onMessage: ({ record }) => {
        if (record.case === "step") watch.#set({ lastStep: record.value });
        if (record.case === "evaluation")
          watch.#set({ evaluations: [...watch.#progress.evaluations, record.value] });
        if (record.case === "phase") watch.#enter(record.value.phase, Number(record.value.atMs));
      },
    });
    return watch;
  }

  get current(): Progress {
    return this.#progress;
  }

  get isFinished(): boolean {
    return this.#progress.phase === RunPhase.FINISHED;
  }

  /** Resolves when the scheduler has declared the run finished. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  /** Asks the scheduler and the trainer once; a service that is away leaves the last answer standing. */
  async refresh(): Promise<void> {
    const { presences } = this.#lookout;
    const scheduler = this.#client(SchedulerService, presences.newest("scheduler"));
    const trainer = this.#client(TrainerService, presences.newest("trainer"));
    const [run, state] = await Promise.all([
      scheduler?.getRunStatus({}).catch(() => undefined),
      trainer?.getTrainerStatus({}).catch(() => undefined),
    ]);
    if (run !== undefined) this.#set({ run });
    if (state !== undefined) this.#set({ trainer: state });
  }

  async stop(): Promise<void> {
    await this.#following?.stop();
    for (const { client } of this.#clients.values()) client.close();
  }

  #client<S extends Asked>(service: S, presence: ServicePresence | undefined): Client<S> | undefined {
    if (presence === undefined || presence.rpcAddress === "") return undefined;
    const known = this.#clients.get(service.typeName);
    if (known?.address === presence.rpcAddress) return known.client as Client<S>;
    known?.client.close();
    const client = rpcClient(service, presence.rpcAddress, {
      bearer: this.#lookout.bearer,
      deadlineMs: ASK_DEADLINE_MS,
    });
    this.#clients.set(service.typeName, {
      address: presence.rpcAddress,
      client: client as unknown as Client<Asked>,
    });
    return client;
  }

  #enter(phase: RunPhase, atMs: number): void {
    const started = new Map(this.#progress.phaseStartedAt);
    // A restarted scheduler may declare the phase it finds itself in once more.
    if (!started.has(phase)) started.set(phase, atMs);
    this.#set({ phase, phaseStartedAt: started });
    if (phase === RunPhase.FINISHED) this.#finished.resolve();
  }

  #set(change: Partial<Progress>): void {
    this.#progress = { ...this.#progress, ...change };
  }
}
