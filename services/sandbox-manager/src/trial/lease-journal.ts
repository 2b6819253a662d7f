/**
 * Owns the list of leases this manager has announced and not yet ended, on disk, so that the next process can
 * report as lost what this one lost by dying. Without it the scheduler would wait for the work to be delivered
 * again. Holds no token.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { TrialName } from "./reports.js";

export interface JournalledLease extends TrialName {
  readonly lease: string;
  /** Sequence of the report that announced it. */
  readonly sequence: number;
}

export class LeaseJournal {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  }

  add(entry: JournalledLease): void {
    writeFileSync(this.#file(entry.lease), JSON.stringify(entry), { mode: 0o600 });
  }

  remove(lease: string): void {
    rmSync(this.#file(lease), { force: true });
  }

  /** What an earlier process left. A file cut short by the crash names no lease and is dropped. */
  leftovers(): JournalledLease[] {
    return readdirSync(this.#directory).flatMap((name) => {
      try {
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
