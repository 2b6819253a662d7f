/**
 * Owns the course of training as an actor's reducer: groups come in, steps go out, one at a time.
 * Does not do anything itself: effects are performed by the service.
 *
 * Step n is formed from the groups after the cursor of version n−1; nothing is started past the last step.
 */
import type { Step } from "@mortise/kernel";
import { type BatchGroup, type BatchRules, type DecidedGroup, formBatch } from "./step/form-batch.js";

export interface TrainingState {
  /** Current policy version; the step being formed is version + 1. */
  readonly version: number;
  /** Sequence on GROUPS up to which every group was consumed. */
  readonly cursor: number;
  /** Decided groups after the cursor, in stream order. */
  readonly queue: readonly DecidedGroup[];
  /** `held` until the first `committed` message says where training stands. */
  readonly phase: "held" | "forming" | "training" | "finished";
  readonly lastStep: number;
  readonly rules: BatchRules;
}

export type TrainingMessage =
  | { readonly kind: "group"; readonly group: DecidedGroup }
  | { readonly kind: "committed"; readonly version: number; readonly cursor: number };

export type TrainingEffect =
  | { readonly kind: "train"; readonly step: number; readonly batch: readonly BatchGroup[] }
  | { readonly kind: "finished" };

export function onMessage(
  state: TrainingState,
  message: TrainingMessage,
): Step<TrainingState, TrainingEffect> {
  switch (message.kind) {
    case "group": {
      const last = state.queue.at(-1)?.sequence ?? state.cursor;
      // Seen or already consumed: the stream's order makes this the whole of deduplication.
      if (message.group.sequence <= last) return { state, effects: [] };
      return formed({ ...state, queue: [...state.queue, message.group] });
    }
    case "committed": {
      const queue = state.queue.filter((group) => group.sequence > message.cursor);
      const next: TrainingState = {
        ...state,
        version: message.version,
        cursor: message.cursor,
        queue,
        phase: "forming",
      };
      if (next.version < next.lastStep) return formed(next);
      return { state: { ...next, phase: "finished" }, effects: [{ kind: "finished" }] };
    }
  }
}

function formed(state: TrainingState): Step<TrainingState, TrainingEffect> {
  if (state.phase !== "forming") return { state, effects: [] };
  const step = state.version + 1;
  const batch = formBatch(state.queue, step, state.rules);
  if (!batch) return { state, effects: [] };
  return { state: { ...state, phase: "training" }, effects: [{ kind: "train", step, batch }] };
}
