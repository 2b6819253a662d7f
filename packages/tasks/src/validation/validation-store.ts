/**
 * Owns what validations of a directory of tasks leave beside the tasks: one file a task, and the quarantine list of
 * those not to be used. Does not validate.
 *
 * V1  A stored validation is of one digest: of a task that has changed since, nothing is known.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { taskDigest } from "../harbor/digest.js";
import { parseJsonFile } from "../harbor/expected-tests.js";
import type { TaskValidation } from "./validate-task.js";

const Stored = z.strictObject({
  schema: z.literal(1),
  /** How attempts were executed: `process`, `process without network`, `sandbox`. */
  executor: z.string(),
  /** ISO 8601. */
  validatedAt: z.string(),
  validation: z.strictObject({
    id: z.string(),
    digest: z.string(),
    isValid: z.boolean(),
    gold: z.strictObject({ resolved: z.int(), attempts: z.int() }),
    noop: z.strictObject({ resolved: z.boolean(), attempts: z.int(), failed: z.array(z.string()) }),
    flakeRate: z.number(),
    flakyTests: z.array(z.string()),
    wallMs: z.strictObject({ median: z.number(), max: z.number() }).exactOptional(),
    isEgressFree: z.boolean(),
    protection: z.strictObject({ channel: z.string(), alteredTests: z.int() }).exactOptional(),
    problems: z.array(z.string()),
  }),
});

export type StoredValidation = z.infer<typeof Stored>;

const FOLDER = "validation";
export const QUARANTINE = "quarantine.txt";

/** What is stored of a task as it is now; undefined if nothing (V1). Throws MORTISE_TASK_INVALID for a damaged file. */
export function readValidation(root: string, id: string): StoredValidation | undefined {
  const path = join(root, FOLDER, `${id}.json`);
  if (!existsSync(path)) return undefined;
  const stored = parseJsonFile(path, readFileSync(path, "utf8"), Stored);
  return stored.validation.digest === taskDigest(join(root, id)) ? stored : undefined;
}

/** Stores one validation, in one rename. */
export function writeValidation(
  root: string,
  executor: string,
  validation: TaskValidation,
  validatedAt: Date,
): void {
  mkdirSync(join(root, FOLDER), { recursive: true });
  const stored = { schema: 1, executor, validatedAt: validatedAt.toISOString(), validation };
  put(join(root, FOLDER, `${validation.id}.json`), `${JSON.stringify(stored, null, 2)}\n`);
}

/**
 * Writes the names of tasks that are not valid, with the reason, as `mortise tasks index --exclude` reads them.
 * Gives those tasks.
 */
export function writeQuarantine(root: string): TaskValidation[] {
  const folder = join(root, FOLDER);
  const ids = existsSync(folder)
    ? readdirSync(folder).flatMap((name) => /^(.+)\.json$/.exec(name)?.[1] ?? [])
    : [];
  const bad = ids
    .sort()
    .filter((id) => existsSync(join(root, id, "task.toml")))
    .flatMap((id) => readValidation(root, id)?.validation ?? [])
    .filter(({ isValid }) => !isValid);
  put(join(root, QUARANTINE), bad.map(({ id, problems }) => `${id} # ${oneLine(problems[0]!)}\n`).join(""));
  return bad;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").slice(0, 200);
}

function put(path: string, content: string): void {
  writeFileSync(`${path}.partial`, content);
  renameSync(`${path}.partial`, path);
}
