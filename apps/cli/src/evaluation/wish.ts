/**
 * Owns what an evaluation was asked to do: written into its directory at its first start, read back when it is resumed.
 * Paths are absolute. Does not check that they lead anywhere.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { EvaluationProtocol, MortiseError } from "@mortise/contracts";
import { parseStrict } from "@mortise/kernel";
import { z } from "zod";
import { writePrivate } from "../provision/identity.js";
import { BACKENDS } from "../site/init/backend.js";
import { projectPaths } from "../site/project-paths.js";

const path = z.string().min(1);
const bound = z.number().min(0).max(1).optional();

export const RUN_ID = /^[A-Za-z0-9_-]{1,64}$/;

const EvaluationWish = z.strictObject({
  /** `eval` measures under a protocol file; `infer` collects attempts and chooses tasks by them. */
  command: z.enum(["eval", "infer"]),
  runId: z.string().regex(RUN_ID),
  protocol: EvaluationProtocol,
  checkpoint: path,
  /** `embedded`, addresses of servers separated by commas, or a script file. */
  engine: z.string().min(1),
  /** Name the servers serve the policy under. */
  model: z.string().optional(),
  harness: z.string().min(1),
  /** Site file of a site that is up; without one the run has a site of its own. */
  site: path.optional(),
  /** Of a site of its own. */
  backend: z.enum(BACKENDS),
  /** A directory of tasks or an index; the site's own when absent. */
  tasks: path.optional(),
  split: z.string().optional(),
  concurrency: z.int().min(1),
  /** Solve rates of the tasks that are selected. */
  select: z.strictObject({ min: bound, max: bound }).optional(),
  out: path,
});
export type EvaluationWish = z.infer<typeof EvaluationWish>;

/** Of one evaluation; those of its site, where it has one of its own, are beside them. */
export interface EvaluationPaths {
  readonly directory: string;
  readonly wish: string;
  readonly run: string;
  /** Directory of the index of what is attempted. */
  readonly tasks: string;
  readonly owner: string;
}

export function evaluationPaths(runId: string): EvaluationPaths {
  const directory = join(projectPaths().runs, runId);
  const at = (name: string) => join(directory, name);
  return {
    directory,
    wish: at("evaluation.json"),
    run: at("run.toml"),
    tasks: at("attempted"),
    owner: at("evaluation.owner.json"),
  };
}

/**
 * How many agents go at once may change from start to start, and nothing else.
 * @throws MORTISE_OPERATOR_RUN_EXISTS
 */
export async function assertSameWish(wish: EvaluationWish): Promise<void> {
  const text = (one: EvaluationWish) => JSON.stringify({ ...EvaluationWish.parse(one), concurrency: 0 });
  if (!existsSync(evaluationPaths(wish.runId).wish) || text(await storedWish(wish.runId)) === text(wish))
    return;
  throw new MortiseError({
    code: "MORTISE_OPERATOR_RUN_EXISTS",
    message: `${wish.runId} was started with other options.`,
    fix: `Go on with it by --resume ${wish.runId}, or give another --run-id.`,
    detail: { field: "--run-id" },
  });
}

export function storeWish(wish: EvaluationWish): Promise<void> {
  return writePrivate(evaluationPaths(wish.runId).wish, `${JSON.stringify(wish, null, 2)}\n`);
}

/** @throws MORTISE_OPERATOR_RUN_UNKNOWN */
export async function storedWish(runId: string): Promise<EvaluationWish> {
  const { wish } = evaluationPaths(runId);
  if (!existsSync(wish))
    throw new MortiseError({
      code: "MORTISE_OPERATOR_RUN_UNKNOWN",
      message: `No evaluation of this clone is called ${runId}.`,
      fix: "Give the id that `mortise eval` or `mortise infer` printed first.",
      detail: { field: "--resume" },
    });
  return parseStrict(EvaluationWish, JSON.parse(await readFile(wish, "utf8")), { source: wish });
}
