/**
 * Owns the stored configuration of a run (KV `runs`): written at its first start, compared at every later one.
 * A run whose groups, tasks or seed changed would not be the same run: its open groups could not be derived again.
 */
import { createHash } from "node:crypto";
import { MortiseError, type RunRecord } from "@mortise/contracts";
import type { Kv } from "@mortise/kernel";
import type { IndexedTask } from "./task-order.js";

/** SHA-256 (hex) of the tasks a run draws from. */
export function tasksDigest(splits: readonly (readonly IndexedTask[])[]): string {
  const text = splits
    .map((tasks) => tasks.map(({ id, digest }) => `${id} ${digest}`).join("\n"))
    .join("\n\n");
  return createHash("sha256").update(text).digest("hex");
}

/**
 * Stores the record of a new run; for a known one, throws MORTISE_OPERATOR_RUN_EXISTS naming the field that
 * differs.
 */
export async function keepRunRecord(kv: Kv, record: RunRecord): Promise<void> {
  const key = record.config.run.id;
  const bytes = new TextEncoder().encode(JSON.stringify(record));
  if ((await kv.create(key, bytes)) !== undefined) return;
  const entry = await kv.get(key);
  if (entry === undefined) return;
  const field = firstDifference(parse(entry.value), record);
  if (field === undefined) return;
  throw new MortiseError({
    code: "MORTISE_OPERATOR_RUN_EXISTS",
    message: `run ${key} was started with another ${field}.`,
    fix: `Resume it with the configuration it was started with, or choose another run.id.`,
    detail: { field },
  });
}

function parse(value: Uint8Array): RunRecord {
  return JSON.parse(new TextDecoder().decode(value));
}

/** The fields from which groups, trials and evaluations are derived. */
const IDENTITY: readonly (readonly [field: string, of: (record: RunRecord) => unknown])[] = [
  ["run.seed", ({ config }) => config.run.seed],
  ["tasks", ({ config }) => config.tasks],
  ["task index", ({ tasksDigest }) => tasksDigest],
  ["rollout.groupSize", ({ config }) => config.rollout.groupSize],
  ["trainer.groupsPerStep", ({ config }) => config.trainer.groupsPerStep],
  ["evaluation.attempts", ({ config }) => config.evaluation.attempts],
  // Records of earlier versions have no mode.
  ["run.mode", ({ config }) => config.run.mode ?? "training"],
  ["evaluation.protocol", ({ config }) => config.evaluation.protocol],
  ["policy.checkpoint", ({ config }) => ofEvaluation(config, config.policy.checkpoint)],
  ["rollout.harness", ({ config }) => ofEvaluation(config, config.rollout.harness)],
];

/** What is measured: half of an evaluation with one and half with another would be a number of neither. */
function ofEvaluation(config: RunRecord["config"], value: string): string | undefined {
  return config.run.mode === "evaluation" ? value : undefined;
}

function firstDifference(stored: RunRecord, now: RunRecord): string | undefined {
  const differs = IDENTITY.find(([, of]) => JSON.stringify(of(stored)) !== JSON.stringify(of(now)));
  return differs?.[0];
}
