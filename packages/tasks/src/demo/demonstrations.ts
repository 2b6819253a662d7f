/**
 * Owns the demonstrations a policy is warm-started on: chats in which the edit is wrong on purpose in a known
 * share of cases, so that there is something left for reward to teach. Made from training tasks only.
 * Does not render or tokenise (chat-template.ts gives the template).
 */
import { MortiseError } from "@mortise/contracts";
import type { DemoTask, Edit } from "./plan.js";
import { seededRandom } from "./random.js";

/** OpenAI chat messages, as the mini harness and the model exchange them. */
export type DemoMessage =
  | { role: "user"; content: string }
  | { role: "assistant"; content: string }
  | { role: "assistant"; content: null; tool_calls: DemoToolCall[] }
  | { role: "tool"; tool_call_id: string; content: string };

export interface DemoToolCall {
  id: string;
  type: "function";
  function: { name: "edit"; arguments: string };
}

export interface Demonstration {
  readonly taskId: string;
  readonly messages: readonly DemoMessage[];
}

export interface DemonstrationOptions {
  readonly seed: number;
  /** Default 2000. */
  readonly count?: number;
  /** Share of demonstrations with a wrong edit; default 0.6. */
  readonly wrongShare?: number;
  /**
   * Share of the wrong ones that show the context's bad habit, always the same wrong edit; the rest is uniform
   * over the context's wrong edits. Default 0.7. A habit makes the most likely answer wrong, so greedy decoding
   * alone does not undo the noise.
   */
  readonly systematicShare?: number;
}

/** Draws demonstrations uniformly over the tasks. Throws MORTISE_TRAINER_DEMONSTRATIONS for a held-out task. */
export function generateDemonstrations(
  tasks: readonly DemoTask[],
  options: DemonstrationOptions,
): Demonstration[] {
  const { seed, count = 2000, wrongShare = 0.6, systematicShare = 0.7 } = options;
  const leak = tasks.find((task) => task.split !== "train");
  if (leak !== undefined || tasks.length === 0) {
    throw new MortiseError({
      code: "MORTISE_TRAINER_DEMONSTRATIONS",
      message: leak === undefined ? "there are no tasks to demonstrate." : `${leak.id} is held out.`,
      fix: "Pass training tasks only.",
    });
  }
  const random = seededRandom(seed, "demonstrations");
  return Array.from({ length: count }, () => {
    const task = tasks[random.below(tasks.length)]!;
    const isWrong = random.next() < wrongShare;
    const isSystematic = random.next() < systematicShare;
    const choice = random.below(task.wrongEdits.length);
    if (!isWrong) return demonstration(task, task.gold);
    return demonstration(task, task.wrongEdits[isSystematic ? habitOf(task, seed) : choice]!);
  });
}

/** One JSON object a line, the format the trainer's warm start reads. */
export function demonstrationLines(demonstrations: readonly Demonstration[]): string {
  return demonstrations.map((entry) => `${JSON.stringify(entry)}\n`).join("");
}

/** The chat in which a policy answers a task with one edit and stops. */
export function demonstration(task: DemoTask, edit: Edit): Demonstration {
  const call: DemoToolCall = {
    id: "call_0",
    type: "function",
    function: { name: "edit", arguments: JSON.stringify({ old: edit.old, new: edit.new }) },
  };
  return {
    taskId: task.id,
    messages: [
      { role: "user", content: task.prompt },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: call.id, content: "ok" },
      { role: "assistant", content: "done" },
    ],
  };
}

/** Which wrong edit is the habit: the same for every surface of a context under one seed. */
function habitOf(task: DemoTask, seed: number): number {
  return seededRandom(seed, `habit ${task.context}`).below(task.wrongEdits.length);
}
