/**
 * Owns where the clone lies and what Mortise writes into it. Nothing else in the CLI joins these paths.
 * Creates nothing.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The clone: dist/site/ is four levels below it. */
export const projectRoot = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..", "..");

export interface ProjectPaths {
  readonly root: string;
  /** Everything Mortise writes, outside version control. */
  readonly state: string;
  readonly cache: string;
  readonly runs: string;
  /** Generated task directories, by digest of their plan. */
  readonly tasks: string;
}

export function projectPaths(root: string = projectRoot): ProjectPaths {
  const state = join(root, ".mortise");
  return { root, state, cache: join(state, "cache"), runs: join(state, "runs"), tasks: join(state, "tasks") };
}
