/**
 * Owns the bytes of a run record: gzip of JSON `mortise-evidence/1`, outputs in base64. Does not judge.
 */
import { gunzipSync, gzipSync } from "node:zlib";
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";
import type { RanStep, RunRecord } from "./run-record.js";

const FORMAT = "mortise-evidence/1";
/** Of one record unpacked: outputs are bounded by the site, so more is no record of ours. */
const MAX_BYTES = 256 * 1024 * 1024;

const bytes = z.base64().transform((text) => new Uint8Array(Buffer.from(text, "base64")));
const Step = z.strictObject({
  name: z.string(),
  exitCode: z.int(),
  signal: z.string(),
  timedOut: z.boolean(),
  outOfMemory: z.boolean(),
  outputTruncated: z.boolean(),
  wallMs: z.number(),
  stdout: bytes,
  stderr: bytes,
  files: z.array(z.strictObject({ path: z.string(), content: bytes, refused: z.string() })),
});
const Evidence = z.strictObject({
  format: z.literal(FORMAT),
  task: z.strictObject({ id: z.string(), digest: z.string() }),
  kind: z.enum(["results", "log", "reward"]),
  nonce: z.string(),
  hasChannel: z.boolean(),
  hasChange: z.boolean(),
  runner: z.string().optional(),
  steps: z.array(Step),
  counter: z
    .strictObject({
      nonce: z.string(),
      tests: z.array(z.strictObject({ name: z.string(), kind: z.enum(["value", "sense"]) })),
      steps: z.array(Step),
      failure: z.string(),
    })
    .optional(),
  stripped: z.array(z.strictObject({ path: z.string(), reason: z.string() })),
  diffs: z.array(z.strictObject({ name: z.string(), rung: z.string(), failure: z.string() })),
});

export function encodeEvidence(run: RunRecord): Uint8Array {
  const counter =
    run.counter === undefined ? {} : { counter: { ...run.counter, steps: run.counter.steps.map(packed) } };
  return gzipSync(JSON.stringify({ format: FORMAT, ...run, steps: run.steps.map(packed), ...counter }));
}

/** Bytes as text. */
function packed(step: RanStep): object {
  const asText = (value: Uint8Array) => Buffer.from(value).toString("base64");
  return {
    ...step,
    stdout: asText(step.stdout),
    stderr: asText(step.stderr),
    files: step.files.map((file) => ({ ...file, content: asText(file.content) })),
  };
}

/** Throws MORTISE_VERIFIER_RESULTS when the bytes are no evidence of this format. */
export function decodeEvidence(bytesOf: Uint8Array): RunRecord {
  try {
    const { format: _, ...run } = Evidence.parse(
      JSON.parse(gunzipSync(bytesOf, { maxOutputLength: MAX_BYTES }).toString()),
    );
    return run;
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_VERIFIER_RESULTS",
      message: `the evidence cannot be read as ${FORMAT}: ${cause instanceof Error ? cause.message : cause}`,
      cause,
    });
  }
}
