/**
 * Owns checkpoints on disk: one directory per policy version, a Hugging Face directory plus what resuming needs.
 * Does not own which version is current (the KV is, DESIGN §6).
 *
 *   <version>/  config.json, tokenizer files …      copied from the initial policy
 *               model.safetensors                   weights
 *               optimizer.bin                       AdamW moments
 *               trainer.json                        format, digests, cursor on GROUPS, updates made, groups
 *               step-record.bin                     the StepRecord to publish (not for version 0)
 *
 * K1  A directory under its final name is complete: files are written elsewhere, synced, then renamed.
 */
import { constants } from "node:fs";
import { copyFile, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";

const FORMAT = 1;
const WEIGHTS = "model.safetensors";
const OPTIMIZER = "optimizer.bin";
const FACTS = "trainer.json";
const RECORD = "step-record.bin";
const TEMPORARY = ".tmp-";
/** Files of the initial policy that make a checkpoint a complete Hugging Face directory. */
const COMPANIONS = /^(?!.*safetensors)(?!trainer\.json$).*\.(json|jinja|txt|model)$/;

const Facts = z.strictObject({
  format: z.literal(FORMAT),
  run: z.string(),
  version: z.int().min(0),
  /** Hex digest of model.safetensors. */
  sha256: z.string(),
  /** Digest of the version this one was computed from; null for version 0. */
  baseSha256: z.string().nullable(),
  /** Sequence on GROUPS up to which every group was consumed. */
  cursor: z.int().min(0),
  /** Optimiser updates since version 0. */
  updates: z.int().min(0),
  groups: z.array(z.string()),
  seed: z.int(),
  fence: z.int(),
});
export type CheckpointFacts = z.infer<typeof Facts>;

export interface Checkpoint {
  readonly facts: CheckpointFacts;
  readonly weights: Uint8Array;
  readonly optimizer: Uint8Array;
  /** StepRecord bytes; empty for version 0. */
  readonly record: Uint8Array;
}

export const CHECKPOINT_FORMAT = FORMAT;

export class CheckpointStore {
  readonly #root: string;
  readonly #companions: string;

  /** @param root directory of this run's checkpoints; @param companions Hugging Face directory to copy from. */
  constructor(root: string, companions: string) {
    this.#root = root;
    this.#companions = companions;
  }

  /** Creates the root and removes what a killed process left half-written. */
  async prepare(): Promise<void> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#root)) {
      if (name.startsWith(TEMPORARY)) await rm(join(this.#root, name), { recursive: true, force: true });
    }
  }

  /** Versions on disk, ascending. */
  async versions(): Promise<number[]> {
    const names = await readdir(this.#root);
    return names
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .sort((a, b) => a - b);
  }

  /** Writes all files to a temporary directory and syncs them. The result is passed to `store`. */
  async stage(checkpoint: Checkpoint): Promise<string> {
    const staged = join(this.#root, `${TEMPORARY}${checkpoint.facts.version}-${process.pid}`);
    try {
      await rm(staged, { recursive: true, force: true });
      await mkdir(staged, { mode: 0o700 });
      for (const name of await readdir(this.#companions)) {
        const source = join(this.#companions, name);
        if (!COMPANIONS.test(name) || !(await stat(source)).isFile()) continue;
        await copyFile(source, join(staged, name), constants.COPYFILE_FICLONE);
      }
      await writeSynced(join(staged, WEIGHTS), checkpoint.weights);
      await writeSynced(join(staged, OPTIMIZER), checkpoint.optimizer);
      await writeSynced(join(staged, RECORD), checkpoint.record);
      await writeSynced(join(staged, FACTS), Buffer.from(`${JSON.stringify(checkpoint.facts, null, 2)}\n`));
      await syncDirectory(staged);
      return staged;
    } catch (cause) {
      throw diskFault(cause, staged);
    }
  }

  /** Gives a staged directory its final name (K1), replacing a version that was never published. */
  async store(staged: string, version: number): Promise<void> {
    const final = this.#path(version);
    await rm(final, { recursive: true, force: true });
    await rename(staged, final);
    await syncDirectory(this.#root);
  }

  /** @throws MortiseError MORTISE_TRAINER_CHECKPOINT when the directory is missing or of another format. */
  read(version: number): Promise<Checkpoint> {
    return this.#attempt(version, async (path) => {
      const facts = await readFacts(path);
      const [weights, optimizer, record] = await Promise.all(
        [WEIGHTS, OPTIMIZER, RECORD].map((name) => readFile(join(path, name))),
      );
      return { facts, weights: weights!, optimizer: optimizer!, record: record! };
    });
  }

  /** As `read`, without the large files. */
  facts(version: number): Promise<CheckpointFacts> {
    return this.#attempt(version, readFacts);
  }

  async remove(version: number): Promise<void> {
    await rm(this.#path(version), { recursive: true, force: true });
  }

  async #attempt<T>(version: number, read: (path: string) => Promise<T>): Promise<T> {
    const path = this.#path(version);
    try {
      return await read(path);
    } catch (cause) {
      throw new MortiseError({
        code: "MORTISE_TRAINER_CHECKPOINT",
        message: `${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}.`,
        detail: { path, version },
        cause,
      });
    }
  }

  #path(version: number): string {
    return join(this.#root, String(version));
  }
}

async function readFacts(path: string): Promise<CheckpointFacts> {
  return Facts.parse(JSON.parse(await readFile(join(path, FACTS), "utf8")));
}

async function writeSynced(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, "w", 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function diskFault(cause: unknown, path: string): MortiseError {
  const isFull = (cause as NodeJS.ErrnoException).code === "ENOSPC";
  return new MortiseError({
    code: isFull ? "MORTISE_OPERATOR_DISK_FULL" : "MORTISE_TRAINER_CHECKPOINT",
    message: `writing ${path}: ${cause instanceof Error ? cause.message : String(cause)}.`,
    detail: { path },
    cause,
  });
}
