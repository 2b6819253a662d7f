/** Owns the shape of what every trial of a manager shares. */
import type { SiteConfig } from "@mortise/contracts";
import type { Bus, Log } from "@mortise/kernel";
import type { ManagerMetrics } from "../manager-metrics.js";
import type { LeaseJournal } from "./lease-journal.js";
import type { Reporter } from "./reports.js";

export interface ManagerContext {
  readonly site: SiteConfig;
  readonly bus: Bus;
  readonly log: Log;
  readonly metrics: ManagerMetrics;
  readonly reporter: Reporter;
  readonly journal: LeaseJournal;
  /** Where the scheduler reaches this manager; known only after the process serves. */
  rpcAddress(): Promise<string>;
}
