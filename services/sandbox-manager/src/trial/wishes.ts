/**
 * Owns what a run's wishes make of a task: the instruction its agent is told, the network it may have, and whether its
 * tests are shown. What is decided against the task is said. Pure but for reading the tests.
 */
import { type SandboxOverrides, ShownTests as Shown } from "@mortise/contracts";
import type { TaskNetwork } from "@mortise/tasks";
import type { ShelvedTask } from "../shelf/tasks.js";
import { SHOWN_TESTS, type ShownTests, shownTestsOf } from "./shown-tests.js";

type Wishes = Pick<SandboxOverrides, "instruction" | "closedNetwork" | "shownTests">;

export interface Wished {
  readonly instruction: string;
  readonly network: TaskNetwork;
  readonly shown: ShownTests | undefined;
  /** For the record of the sandbox. */
  readonly notes: readonly string[];
}

/** Throws MORTISE_TASK_INVALID where tests cannot be shown. */
export function wishedOf(shelved: ShelvedTask, wishes: Wishes | undefined): Wished {
  const { task, workdir } = shelved;
  const asked = task.agent.network;
  const isClosed = wishes?.closedNetwork === true && asked.mode !== "no-network";
  const shown = wishes?.shownTests === Shown.COPY ? shownTestsOf(shelved) : undefined;
  return {
    instruction: instructionOf(task.instruction, wishes?.instruction ?? "", `${workdir}/${SHOWN_TESTS}`),
    network: isClosed ? { mode: "no-network", allowedHosts: [] } : asked,
    shown,
    notes: [
      ...(isClosed ? [`the task asks for a network (${asked.mode}); the run closes it`] : []),
      ...(shown === undefined ? [] : [`a copy of the hidden tests is shown in ${SHOWN_TESTS}`]),
    ],
  };
}

/** @param wrapper with the places {instruction} and {tests}; empty: the instruction as it is */
function instructionOf(instruction: string, wrapper: string, tests: string): string {
  if (wrapper === "") return instruction;
  // By functions: what a task says is never a pattern.
  return wrapper.replaceAll(/\{(instruction|tests)\}/g, (_, place) =>
    place === "instruction" ? instruction : tests,
  );
}
