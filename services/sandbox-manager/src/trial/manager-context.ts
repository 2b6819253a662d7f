/** Owns the shape of what every trial of a manager shares. */
import type { SiteConfig } from "@mortise/contracts";
import type { Bus, Clock, Log } from "@mortise/kernel";
import type { RecordStore } from "../content-store.js";
import type { ManagerMetrics } from "../manager-metrics.js";
import type { LeaseJournal } from "./lease-journal.js";
import type { Reporter } from "./reports.js";

export interface ManagerContext {
  readonly site: SiteConfig;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: ManagerMetrics;
  readonly reporter: Reporter;
  readonly journal: LeaseJournal;
  readonly records: RecordStore;
  /** Where the scheduler reaches this manager; known only after the process serves. */
  rpcAddress(): Promise<string>;
}
