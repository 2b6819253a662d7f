/**
 * Owns the scripted harnesses: directories with one script a task, chosen by the instruction. What they do in the
 * workspace is the script's; none of them needs a model.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Harness } from "./deployment.js";

/** The instruction is the task's name: nothing else of the task is known inside. */
const AGENT = `set -u
. "$(dirname "$0")/$TASK.sh"
exit 0
`;

/** Writes a harness that runs `scripts.get(task)` on each task. */
export function writeHarness(name: string, root: string, scripts: ReadonlyMap<string, string>): Harness {
  const directory = join(root, name);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "agent.sh"), AGENT, { mode: 0o755 });
  for (const [task, script] of scripts) writeFileSync(join(directory, `${task}.sh`), script, { mode: 0o755 });
  return { name, directory };
}
