/**
 * Owns the table of states of a directory's builds: a row a task in `builds/`, beside the index, each written in one
 * rename. Does not build.
 *
 * B1  A row is of one state of what its build reads: of a task that has changed since, nothing is known.
 * B2  `building` is written before a build begins, so that one that was interrupted is found and begun again.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { parseJsonFile } from "../harbor/expected-tests.js";
import { BUILD_CAUSES } from "./build-cause.js";

const digest = z.string().regex(/^[0-9a-f]{64}$/);

const Row = z.strictObject({
  schema: z.literal(1),
  task: z.string(),
  from: z.enum(["dockerfile", "install-config"]),
  state: z.enum(["building", "built", "failed"]),
  /** Over what the build reads of the task, and how it is asked to build (B1). */
  inputs: digest,
  /** Builds begun with these inputs. */
  attempts: z.int(),
  /** ISO 8601, of the last one. */
  startedAt: z.string(),
  ms: z.number().exactOptional(),
  /** What environment.docker_image says since. */
  image: z.string().exactOptional(),
  /** What it said before. */
  replacedImage: z.string().exactOptional(),
  /** Of the task's directory before and after its image was written into it. */
  digestBefore: digest.exactOptional(),
  digestAfter: digest.exactOptional(),
  cause: z.enum(BUILD_CAUSES).exactOptional(),
  message: z.string().exactOptional(),
  fix: z.string().exactOptional(),
});
export type BuildState = z.infer<typeof Row>;

const FOLDER = "builds";

/** The row of a task; undefined if there is none. Throws MORTISE_TASK_INVALID for a damaged one. */
export function readBuildState(root: string, id: string): BuildState | undefined {
  const path = join(root, FOLDER, `${id}.json`);
  return existsSync(path) ? parseJsonFile(path, readFileSync(path, "utf8"), Row) : undefined;
}

export function writeBuildState(root: string, row: BuildState): void {
  mkdirSync(join(root, FOLDER), { recursive: true });
  const path = join(root, FOLDER, `${row.task}.json`);
  writeFileSync(`${path}.partial`, `${JSON.stringify(row, null, 2)}\n`);
  renameSync(`${path}.partial`, path);
}

/** @param settings how a build is asked for; only plain values */
export function buildInputs(filesDigest: string, settings: Readonly<Record<string, unknown>>): string {
  const sorted = Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([filesDigest, sorted]))
    .digest("hex");
}
