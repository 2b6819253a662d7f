/**
 * Owns a learned verifier on disk: a Hugging Face checkpoint with a manifest of what it was made of. A directory under its
 * name is complete; one whose weights or template are not what the manifest says is refused (T1).
 */
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { parseStrict } from "@mortise/kernel";
import { type Checkpoint, openCheckpoint, writeCheckpoint } from "@mortise/policy";
import { z } from "zod";
import { refuseExisting } from "../export/write-export.js";
import { templateDigest } from "./judge-template.js";

const MANIFEST = "learned-verifier.json";
const FORMAT = 1;
const digest = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);

const Manifest = z.strictObject({
  format: z.literal(FORMAT),
  /** Of model.safetensors. */
  weightsSha256: digest,
  /** Of the weights it started from. */
  baseSha256: digest,
  templateSha256: digest,
  /** Prompt and answer together. */
  maxTokens: z.int().min(1),
  data: z.strictObject({
    /** Of the examples' trials, logs and answers, in their order. */
    sha256: digest,
    examples: count,
    resolved: count,
    unresolved: count,
    /** Examples whose earliest entries had no room. */
    shortened: count,
    /** Attempts with a valid verdict that could not be shown whole enough, or hold a secret. */
    leftOut: count,
    /** Trials without a valid verdict. */
    invalid: count,
    atMost: count,
    heldOutShare: z.number(),
    /** Pattern of what tasks of one side have in common; null where each was by itself. */
    family: z.string().nullable(),
    /** Examples by run and set. */
    sources: z.array(z.strictObject({ run: z.string(), set: z.string(), examples: count })),
  }),
  training: z.strictObject({
    epochs: count,
    batchSize: count,
    learningRate: z.number(),
    seed: z.int(),
    steps: count,
    /** Of the last batch. */
    loss: z.number(),
  }),
  /** Never scored with a claim: the verifier has seen how attempts at them ended. */
  trainedTasks: z.array(z.string()),
  heldOutTasks: z.array(z.string()),
});
export type Manifest = z.infer<typeof Manifest>;

export interface LearnedVerifier {
  readonly checkpoint: Checkpoint;
  readonly manifest: Manifest;
}

export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Writes beside `path` and renames. @throws MortiseError MORTISE_OPERATOR_USAGE when it exists */
export async function writeVerifier(
  path: string,
  base: Checkpoint,
  weights: Uint8Array,
  facts: Omit<Manifest, "format" | "weightsSha256" | "baseSha256" | "templateSha256">,
): Promise<Manifest> {
  refuseExisting(path);
  const manifest: Manifest = {
    format: FORMAT,
    weightsSha256: sha256(weights),
    baseSha256: sha256(base.weights),
    templateSha256: templateDigest,
    ...facts,
  };
  await mkdir(dirname(path), { recursive: true });
  const temporary = await mkdtemp(join(dirname(path), ".mortise-verifier-"));
  try {
    const { config, hfConfig, tokenizerFiles } = base;
    await writeCheckpoint(temporary, { config, hfConfig, weights, tokenizerFiles });
    await writeFile(join(temporary, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
    refuseExisting(path);
    await rename(temporary, path);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return manifest;
}

/** @throws MortiseError MORTISE_POLICY_CHECKPOINT naming the file and the fix */
export async function openVerifier(directory: string): Promise<LearnedVerifier> {
  const manifest = await readManifest(directory);
  const checkpoint = await openCheckpoint(directory);
  if (sha256(checkpoint.weights) !== manifest.weightsSha256)
    throw broken(
      directory,
      "its weights are not those that were trained",
      "Restore model.safetensors, or train again.",
    );
  if (manifest.templateSha256 !== templateDigest)
    throw broken(
      directory,
      "it was trained with another template",
      "Use the version of Mortise that trained it, or train again.",
    );
  return { checkpoint, manifest };
}

async function readManifest(directory: string): Promise<Manifest> {
  const source = join(directory, MANIFEST);
  let text: string;
  try {
    text = await readFile(source, "utf8");
  } catch (cause) {
    throw broken(
      directory,
      `${MANIFEST} cannot be read`,
      "Name a directory that `mortise learned-verifier train` wrote.",
      cause,
    );
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw broken(directory, `${MANIFEST} is not JSON`, "Restore it, or train again.", cause);
  }
  return parseStrict(Manifest, json, { source });
}

function broken(directory: string, what: string, fix: string, cause?: unknown): MortiseError {
  return new MortiseError({
    code: "MORTISE_POLICY_CHECKPOINT",
    message: `${directory}: ${what}.`,
    fix,
    detail: { field: "--verifier", path: directory },
    ...(cause === undefined ? {} : { cause }),
  });
}
