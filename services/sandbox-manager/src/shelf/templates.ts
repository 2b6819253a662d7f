/**
 * Owns what trials of a task start from: the task's image and work tree, its history hidden, searched for the answers
 * and found clean, once; kept as a snapshot while trials fork it and for a while afterwards.
 * Does not seal (sealing/) and does not start trials.
 *
 * M1  Nothing is leased that was not found clean (DESIGN §7). What was refused stays refused: its parts are named by
 *     their digests, so another look would find the same.
 * M2  A small work tree without a repository in it, laid over this host's own programs, is its own template: there is
 *     no history to hide and nothing of the image could hold an answer. Only the tree is searched.
 */
import { mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import type { Clock } from "@mortise/kernel";
import type { Image, Limits, Sandbox, SandboxBackend } from "../backend/types.js";
import type { ContentInit, RecordStore } from "../content-store.js";
import type { FlowKey } from "../fair-queue.js";
import { sha256 } from "../patch/patch.js";
import { type SealReport, sealRoot } from "../sealing/index.js";
import type { StartGate } from "../start-gate.js";
import { answersOf } from "./answers.js";
import { type CacheLease, type CacheLimits, type Evictable, PinnedCache } from "./pinned-cache.js";
import { MAX_SEARCHED_FILES, searchTree } from "./search-tree.js";
import { baseOf, type ShelvedTask } from "./tasks.js";
import { unproved } from "./unproved.js";

/** Counted in ordinary starts: a whole root is read. */
const SEAL_COST = 4;
/** Only what sealing itself writes: one commit of the work tree. Used as needed, not reserved. */
const TEMPLATE_LIMITS: Limits = {
  cpus: 1,
  memoryBytes: 4 * 1024 ** 3,
  pids: 64,
  diskBytes: 4 * 1024 ** 3,
  outputBytes: 65_536,
};
/** What another way of sealing would have to change, so that old templates are not taken for new ones. */
const SEAL_POLICY = "mortise-seal/1";

export interface Template extends Evictable {
  /** What a sandbox of the task is made of. */
  readonly image: Image;
  /** The report of sealing; absent where nothing can be sealed, with the reason in `notes`. */
  readonly seal?: ContentInit;
  readonly notes: readonly string[];
}

export interface TemplateOptions {
  readonly backend: SandboxBackend;
  readonly gate: StartGate;
  readonly clock: Clock;
  readonly records: RecordStore;
  readonly limits: CacheLimits;
  /** Where repositories lie while they are being hidden, and what is needed meanwhile; emptied when the service starts. */
  readonly scratchDirectory: string;
  readonly onFault: (error: unknown) => void;
}

export class TemplateShelf {
  readonly #options: TemplateOptions;
  readonly #cache: PinnedCache<Template>;
  readonly #refused = new Map<string, MortiseError>();
  #nMade = 0;

  constructor(options: TemplateOptions) {
    this.#options = options;
    this.#cache = new PinnedCache(options.limits, options.clock, options.onFault);
  }

  get size(): number {
    return this.#cache.size;
  }
  get bytes(): number {
    return this.#cache.bytes;
  }

  /** Rejects with MORTISE_SANDBOX_SEAL, MORTISE_SANDBOX_SEAL_ANSWER or MORTISE_SANDBOX_NOT_CLOSED (M1). */
  async lease(task: ShelvedTask, flow: FlowKey): Promise<CacheLease<Template>> {
    const key = keyOf(task);
    const refused = this.#refused.get(key);
    if (refused !== undefined) throw refused;
    try {
      return await this.#cache.lease(key, () => this.#make(task, flow));
    } catch (error) {
      if (error instanceof MortiseError && error.code === "MORTISE_SANDBOX_SEAL_ANSWER")
        this.#refused.set(key, error);
      throw error;
    }
  }

  /** Gives back what nobody used for too long. */
  evict(): void {
    this.#cache.evict();
  }

  close(): Promise<void> {
    return this.#cache.close();
  }

  async #make(task: ShelvedTask, flow: FlowKey): Promise<Template> {
    const tree = searchableTree(task);
    if (tree !== undefined) return this.#searched(task, tree); // M2
    if (this.#options.backend.isInsecure) {
      const note = `the ${this.#options.backend.name} backend isolates nothing: nothing was sealed`;
      return { image: task.image, notes: [note], release: async () => {} };
    }
    return this.#options.gate.pass(flow, () => this.#sealed(task), { cost: SEAL_COST });
  }

  async #searched({ task, image }: ShelvedTask, tree: string): Promise<Template> {
    const { records, scratchDirectory } = this.#options;
    const report = await searchTree(tree, answersOf(task), scratchDirectory);
    const seal = await records.put(report);
    return { image, seal, notes: unproved(report), bytes: 0, release: async () => {} };
  }

  /** On this host, or where the root filesystem is. */
  async #seal(template: Sandbox, { task, workdir }: ShelvedTask, store: string): Promise<SealReport> {
    const answers = answersOf(task);
    const { backend, scratchDirectory: scratch } = this.#options;
    if (template.hostRoot !== undefined)
      return sealRoot(template.hostRoot, { workdir, store, answers, scratch });
    if (template.seal !== undefined) return template.seal({ workdir, answers });
    throw new MortiseError({
      code: "MORTISE_SANDBOX_NOT_CLOSED",
      message: `the ${backend.name} backend shows no root filesystem to seal.`,
    });
  }

  async #sealed(task: ShelvedTask): Promise<Template> {
    const { backend, records, scratchDirectory } = this.#options;
    const template = await backend.create({
      id: `template-${process.pid}-${++this.#nMade}`,
      ...baseOf(task),
      mounts: [],
      limits: TEMPLATE_LIMITS,
      network: { kind: "none" },
    });
    const store = mkdtempSync(path.join(scratchDirectory, "history-"));
    try {
      const report = await this.#seal(template, task, store);
      const seal = await records.put(report);
      const snapshot = await template.snapshot();
      return {
        image: snapshot,
        seal,
        notes: unproved(report),
        ...(snapshot.bytes === undefined ? {} : { bytes: snapshot.bytes }),
        release: () => snapshot.release(),
      };
    } finally {
      // Grading starts from the pristine image: what was taken out is needed no more.
      rmSync(store, { recursive: true, force: true });
      await template.destroy();
    }
  }
}

/** M2. The directory of a work tree that can be searched where it lies. */
function searchableTree({ image, workspace }: ShelvedTask): string | undefined {
  const holdsRepository = [...workspace.entries.keys()].some((name) => name.split("/").includes(".git"));
  const isSmall = workspace.entries.size <= MAX_SEARCHED_FILES;
  return image.kind === "host" && isSmall && !holdsRepository ? workspace.directory : undefined;
}

function keyOf({ image, workspace, workdir, task, digest }: ShelvedTask): string {
  return sha256([image.digest, workspace.digest, workdir, task.id, digest, SEAL_POLICY].join("\0"));
}
