/** Owns `mortise capture replay`: where each model call of a recording belongs, as lines or as a table. */
import { TurnRelation, TurnRole } from "@mortise/contracts";
import type { Command } from "commander";
import { type ReplayedCall, replay } from "../capture/replay.js";
import type { OutputOptions } from "../output.js";

export function addCapture(program: Command, output: () => OutputOptions): void {
  const capture = program.command("capture").description("captured conversations");
  capture
    .command("replay")
    .description("align a recording of a harness without an engine; with --json one object a call")
    .argument("<recording>", "JSON lines of events")
    .action((recording: string) => {
      for (const line of replayLines(recording, output().json)) console.log(line);
    });
}

/** One JSON object a call, or a table of them; all of it or an error. */
export function replayLines(recording: string, isJson: boolean): string[] {
  const calls = replay(recording).map(replayedLine);
  return isJson ? calls.map((call) => JSON.stringify(call)) : table(calls);
}

const RELATIONS: Readonly<Record<TurnRelation, string>> = {
  [TurnRelation.UNSPECIFIED]: "unspecified",
  [TurnRelation.ROOT]: "root",
  [TurnRelation.EXTENDS]: "extends",
  [TurnRelation.RETRY]: "retry",
  [TurnRelation.BRANCH]: "branch",
  [TurnRelation.AUXILIARY]: "auxiliary",
};

const ROLES: Readonly<Record<TurnRole, string>> = {
  [TurnRole.UNSPECIFIED]: "unspecified",
  [TurnRole.TRAIN]: "train",
  [TurnRole.CONTEXT_ONLY]: "context-only",
  [TurnRole.EXCLUDED]: "excluded",
};

/** One line of the output; the shape is fixed. */
export function replayedLine({ id, parent, alignment }: ReplayedCall) {
  const { thread, relation, role, roleReason, flags } = alignment;
  return {
    id,
    thread,
    parent: parent ?? null,
    relation: RELATIONS[relation],
    role: ROLES[role],
    reason: [roleReason, ...flags].join(", "),
  };
}

const COLUMNS = ["id", "thread", "parent", "relation", "role", "reason"] as const;

function table(calls: readonly ReturnType<typeof replayedLine>[]): string[] {
  const rows = [[...COLUMNS], ...calls.map((call) => COLUMNS.map((column) => String(call[column] ?? "-")))];
  const widths = COLUMNS.map((_, at) => Math.max(...rows.map((row) => row[at]!.length)));
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at]!))
      .join("  ")
      .trimEnd(),
  );
}
