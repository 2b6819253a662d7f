/**
 * Owns the list of leases this manager has announced and not yet ended, on disk, so that the next process can
 * report as lost what this one lost by dying, and take up again what went on elsewhere. Without it the scheduler would wait for the work to be delivered
 * again. Holds no token.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { DiffLimits } from "../backend/types.js";
import type { RemoteHandle } from "../remote/agent.js";
import type { TrialName } from "./reports.js";

/** An agent that runs in a remote runtime, and does not end with this process. */
export interface RemoteEntry {
  readonly handle: RemoteHandle;
  /** As the site file names it. */
  readonly harness: string;
  /** Name and version the runtime gave itself. */
  readonly agent: string;
  readonly task: { readonly id: string; readonly digest: string };
  readonly limitMs: number;
  /** Of the change. */
  readonly limits: DiffLimits;
}

export interface JournalledLease extends TrialName {
  readonly lease: string;
  /** Sequence of the report that announced it. */
  readonly sequence: number;
  readonly remote?: RemoteEntry;
}

export class LeaseJournal {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  }

  /** Takes the place of what was there of the same lease. */
  add(entry: JournalledLease): void {
    const unfinished = path.join(this.#directory, `${entry.lease}.unfinished`);
    writeFileSync(unfinished, JSON.stringify(entry), { mode: 0o600 });
    renameSync(unfinished, this.#file(entry.lease));
  }

  remove(lease: string): void {
    rmSync(this.#file(lease), { force: true });
  }

  /** What an earlier process left. A file cut short by the crash names no lease and is dropped. */
  leftovers(): JournalledLease[] {
    return readdirSync(this.#directory).flatMap((name) => {
      try {
        if (!name.endsWith(".json")) throw new Error("not finished");
        return [JSON.parse(readFileSync(path.join(this.#directory, name), "utf8")) as JournalledLease];
      } catch {
        rmSync(path.join(this.#directory, name), { force: true });
        return [];
      }
    });
  }

  #file(lease: string): string {
    return path.join(this.#directory, `${lease}.json`);
  }
}
