/**
 * Owns the copy of a task's hidden tests that an agent is shown where an evaluation asks for it: what is copied, where
 * it lies, and taking it out of the change again. Put down after the template was sealed and searched: in no other run
 * are tests where an agent is (DESIGN §7).
 *
 * H1  Nothing of the copy reaches grading: what lies below SHOWN_TESTS is no part of the change, and a verdict comes from
 *     the task's own tests in a sandbox of their own.
 * H2  The record of an imported task holds its repair: it is not shown. Links are not copied.
 */
import { lstatSync, readFileSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { filesBelow, type Task } from "@mortise/tasks";
import type { Sandbox, SandboxUser, TreeFile } from "../backend/types.js";
import type { Patch } from "../patch/patch.js";
import { packTar, type TarMember } from "../patch/tar.js";
import type { ShelvedTask } from "../shelf/tasks.js";

/** Directory of the copy in the work tree. */
export const SHOWN_TESTS = "shown-tests";
/** Of a task that is graded by a log: every column of its record, the gold patch among them. */
const RECORD = "config.json";

/** Regular files by their paths below the work tree. */
export type ShownTests = ReadonlyMap<string, TreeFile>;

/** Throws MORTISE_TASK_INVALID where the work tree has something of that name. */
export function shownTestsOf({ task, workspace }: ShelvedTask): ShownTests {
  const taken = [...workspace.entries.keys()].find(isShown);
  if (taken !== undefined)
    throw new MortiseError({
      code: "MORTISE_TASK_INVALID",
      message: `${task.directory}: the work tree has ${taken}, where the hidden tests would be shown.`,
      fix: "Leave the task out of evaluations that show tests.",
      detail: { field: "rollout.shownTests" },
    });
  const { directory } = task.tests;
  return new Map(
    filesBelow(directory).flatMap((file): [string, TreeFile][] => {
      const source = path.join(directory, file);
      const stat = lstatSync(source);
      if (!stat.isFile() || isRecord(task, file)) return [];
      const place = `${SHOWN_TESTS}/${file}`;
      return [
        [place, { path: place, isExecutable: (stat.mode & 0o100) !== 0, content: readFileSync(source) }],
      ];
    }),
  );
}

/** Lays the copy into the work tree, as the property of who works there. */
export async function showTests(
  sandbox: Pick<Sandbox, "putTar">,
  workdir: string,
  shown: ShownTests,
  user: SandboxUser,
): Promise<void> {
  const members: TarMember[] = [{ name: SHOWN_TESTS, kind: "directory", mode: 0o755 }];
  for (const { path: name, isExecutable, content } of shown.values())
    members.push({ name, kind: "file", mode: isExecutable ? 0o755 : 0o644, content });
  await sandbox.putTar(workdir, await packTar(members), user);
}

export interface WithoutShown {
  /** H1 */
  readonly patch: Patch;
  /** Files of the copy that were changed, added or removed. */
  readonly changed: number;
}

/** The change without the copy. In the base there is none of it, so a file that was left alone is an entry too. */
export function withoutShownTests(patch: Patch, shown: ShownTests): WithoutShown {
  const below = patch.entries.filter(({ path: name }) => isShown(name));
  const untouched = below.filter((entry) => {
    const original = shown.get(entry.path);
    return (
      entry.kind === "file" &&
      original !== undefined &&
      original.isExecutable === (entry.mode === 0o755) &&
      Buffer.from(original.content).equals(entry.content)
    );
  }).length;
  const added = below.filter(({ path: name }) => !shown.has(name)).length;
  return {
    patch: {
      ...patch,
      entries: patch.entries.filter(({ path: name }) => !isShown(name)),
      skipped: patch.skipped.filter(({ path: name }) => !isShown(name)),
    },
    changed: shown.size - untouched + added,
  };
}

/** Of all shown files together: room in the change that is not the agent's to use. */
export function shownBytes(shown: ShownTests): number {
  return [...shown.values()].reduce((sum, { content }) => sum + content.byteLength, 0);
}

function isShown(name: string): boolean {
  return name === SHOWN_TESTS || name.startsWith(`${SHOWN_TESTS}/`);
}

function isRecord({ tests }: Task, file: string): boolean {
  return tests.expected?.format === "log" && file === RECORD;
}
