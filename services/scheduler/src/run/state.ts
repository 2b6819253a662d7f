/**
 * Owns the state of a run, and a draft of it for one reduction: copies a collection the first time it is
 * written, so that a reduction costs what it touches and the state before stays as it was.
 * Does not decide anything (see reducer.ts).
 */
import { type Ledger, RunPhase } from "@mortise/contracts";
import type { Step } from "@mortise/kernel";
import type { Group } from "../group/group.js";
import type { Trial } from "../trial/trial.js";
import type { AdmissionCounters } from "./admission.js";
import type { Effect } from "./effects.js";

export interface RunState {
  readonly phase: RunPhase;
  /** Current policy version; -1 before the first weights. */
  readonly version: number;
  /** Highest version an engine has acknowledged, or should have by now; -1 before. */
  readonly acknowledged: number;
  /** False while the log is replayed: facts are applied, nothing is asked. */
  readonly isLive: boolean;
  readonly isDraining: boolean;
  readonly isStorageFull: boolean;
  /** Live trials, in the order they were queued. */
  readonly trials: ReadonlyMap<string, Trial>;
  /** Trials waiting for room, next first. */
  readonly queue: readonly string[];
  /** Groups not yet decided, evaluations not yet stored. */
  readonly groups: ReadonlyMap<string, Group>;
  /** Training groups all of whose places are settled, and that wait for their turn (publication-order.ts). */
  readonly complete: ReadonlySet<string>;
  readonly admission: AdmissionCounters;
  /** Admitted groups no step has consumed, with the lowest version they would train. */
  readonly admitted: ReadonlyMap<string, number | undefined>;
  /** Evaluations whose record is stored. */
  readonly evaluations: ReadonlySet<string>;
  /** Evaluations whose record is being stored. */
  readonly storing: ReadonlySet<string>;
  readonly tally: Tally;
}

/** Numbers for the status only; nothing is decided by them. */
export interface Tally {
  readonly trialsEnded: number;
  /** Of the step being formed. */
  readonly setupFailures: number;
  readonly rewardSum: number;
  readonly rewardCount: number;
  readonly ledger?: Ledger;
}

export const initialRunState: RunState = {
  phase: RunPhase.UNSPECIFIED,
  version: -1,
  acknowledged: -1,
  isLive: false,
  isDraining: false,
  isStorageFull: false,
  trials: new Map(),
  queue: [],
  groups: new Map(),
  complete: new Set(),
  admission: { started: 0, decided: 0, dropped: 0, refused: 0 },
  admitted: new Map(),
  evaluations: new Set(),
  storing: new Set(),
  tally: { trialsEnded: 0, setupFailures: 0, rewardSum: 0, rewardCount: 0 },
};

type Scalars = Partial<
  Pick<
    RunState,
    | "phase"
    | "version"
    | "acknowledged"
    | "isLive"
    | "isDraining"
    | "isStorageFull"
    | "admission"
    | "tally"
    | "queue"
    | "complete"
    | "admitted"
    | "evaluations"
    | "storing"
  >
>;

export class RunDraft {
  #state: RunState;
  #trials: Map<string, Trial> | undefined;
  #groups: Map<string, Group> | undefined;
  readonly #effects: Effect[] = [];

  constructor(state: RunState) {
    this.#state = state;
  }

  get state(): RunState {
    return this.#state;
  }

  set(changes: Scalars): void {
    this.#state = { ...this.#state, ...changes };
  }

  setTrial(trial: Trial): void {
    this.#ownTrials().set(trial.id, trial);
  }

  removeTrial(id: string): void {
    this.#ownTrials().delete(id);
  }

  setGroup(group: Group): void {
    this.#ownGroups().set(group.id, group);
  }

  removeGroup(id: string): void {
    this.#ownGroups().delete(id);
  }

  /** While the log is replayed only the log is written: what to ask is known at its end (see resume.ts). */
  emit(effects: readonly Effect[]): void {
    for (const effect of effects)
      if (this.#state.isLive || effect.kind === "record") this.#effects.push(effect);
  }

  step(): Step<RunState, Effect> {
    return { state: this.#state, effects: this.#effects };
  }

  #ownTrials(): Map<string, Trial> {
    if (this.#trials === undefined) {
      this.#trials = new Map(this.#state.trials);
      this.#state = { ...this.#state, trials: this.#trials };
    }
    return this.#trials;
  }

  #ownGroups(): Map<string, Group> {
    if (this.#groups === undefined) {
      this.#groups = new Map(this.#state.groups);
      this.#state = { ...this.#state, groups: this.#groups };
    }
    return this.#groups;
  }
}
