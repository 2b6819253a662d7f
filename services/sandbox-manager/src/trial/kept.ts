/**
 * Owns sandboxes of ended trials that are kept to be looked into: as snapshots, so that what the trial left stays as
 * it was; commands run in a sandbox made of one, without any network. Does not decide which are kept (trial.ts).
 *
 * K1  A kept sandbox goes when its time is over, when a newer one needs its place, or with this process.
 */
import { MortiseError, type TerminationReason } from "@mortise/contracts";
import { type Cancel, type Clock, fromUnknown, type Log } from "@mortise/kernel";
import type {
  Command,
  ExecResult,
  Limits,
  Mount,
  Sandbox,
  SandboxBackend,
  Snapshot,
} from "../backend/types.js";
import { environmentOf } from "../environment.js";
import { baseOf, type ShelvedTask } from "../shelf/tasks.js";
import type { TrialName } from "./reports.js";

export interface KeptOptions {
  readonly backend: SandboxBackend;
  readonly clock: Clock;
  readonly log: Log;
  readonly maxKept: number;
}

export interface KeptTrial extends TrialName {
  readonly task: ShelvedTask;
  readonly termination: TerminationReason;
  readonly snapshot: Snapshot;
  readonly mounts: readonly Mount[];
  readonly limits: Limits;
}

export interface KeptEntry extends KeptTrial {
  readonly expiresAt: number;
}

interface Kept {
  readonly entry: KeptEntry;
  readonly cancel: Cancel;
  sandbox: Promise<Sandbox> | undefined;
}

export class KeptSandboxes {
  readonly #options: KeptOptions;
  readonly #kept = new Map<string, Kept>();
  #nMade = 0;

  constructor(options: KeptOptions) {
    this.#options = options;
  }

  list(): KeptEntry[] {
    return [...this.#kept.values()].map(({ entry }) => entry);
  }

  /** Keeps a trial's snapshot for so long; returns until when, epoch ms. */
  add(trial: KeptTrial, keepMs: number): number {
    const { clock, maxKept } = this.#options;
    const expiresAt = clock.now() + keepMs;
    const key = keyOf(trial);
    const cancel = clock.after(keepMs, () => void this.release(trial));
    this.#kept.set(key, { entry: { ...trial, expiresAt }, cancel, sandbox: undefined });
    for (const { entry } of [...this.#kept.values()].slice(0, Math.max(0, this.#kept.size - maxKept)))
      void this.release(entry);
    return expiresAt;
  }

  /** Rejects with MORTISE_SANDBOX_NOT_KEPT. The sandbox is the same for every command. */
  async exec(name: TrialName, command: Omit<Command, "environment">): Promise<ExecResult> {
    const kept = this.#kept.get(keyOf(name));
    if (kept === undefined)
      throw new MortiseError({
        code: "MORTISE_SANDBOX_NOT_KEPT",
        message: `run ${name.run}, trial ${name.trial}`,
      });
    kept.sandbox ??= this.#make(kept.entry);
    kept.sandbox.catch(() => {
      kept.sandbox = undefined;
    });
    const sandbox = await kept.sandbox;
    const { workdir, task, image } = kept.entry.task;
    const environment = { ...environmentOf(image), WORKSPACE: workdir, ...task.environment.env };
    return sandbox.exec({ ...command, environment });
  }

  /** Whether it was there. Idempotent. */
  async release(name: TrialName): Promise<boolean> {
    const kept = this.#kept.get(keyOf(name));
    if (kept === undefined) return false;
    this.#kept.delete(keyOf(name));
    kept.cancel();
    try {
      await (await kept.sandbox)?.destroy();
      await kept.entry.snapshot.release();
    } catch (error) {
      const known = fromUnknown(error, "MORTISE_SANDBOX_LOST", `kept sandbox of trial ${name.trial}`);
      this.#options.log.warn({ event: "kept.not-released", ...name, err: known });
    }
    return true;
  }

  async close(): Promise<void> {
    await Promise.all(this.list().map((entry) => this.release(entry)));
  }

  #make({ task, snapshot, mounts, limits }: KeptEntry): Promise<Sandbox> {
    return this.#options.backend.create({
      id: `kept-${process.pid}-${++this.#nMade}`,
      ...baseOf(task),
      image: snapshot,
      mounts,
      limits,
      network: { kind: "none" },
    });
  }
}

function keyOf({ run, trial }: TrialName): string {
  return `${run}/${trial}`;
}
