/**
 * Owns what a trial asks of the place its agent runs in, once that is prepared: a sandbox of ours (local-stage.ts) or a
 * remote runtime (remote/remote-stage.ts).
 */
import type { ExecResult, Limits, Mount, Snapshot } from "../backend/types.js";
import type { ShelvedTask } from "../shelf/tasks.js";
import type { EndTools, TrialEnd } from "./end.js";
import type { RemoteEntry } from "./lease-journal.js";
import type { ProofInit } from "./reports.js";
import type { StageUsage } from "./stage-clock.js";

export interface AgentOrder {
  /** L3 */
  readonly token: string;
  readonly limitMs: number;
  readonly signal: AbortSignal;
  /** What would have to be known to find the agent again after this process. */
  readonly onRemote: (entry: RemoteEntry) => void;
}

/** What a kept trial is looked into with. */
export interface KeptParts {
  readonly snapshot: Snapshot;
  readonly mounts: readonly Mount[];
  readonly limits: Limits;
}

export interface AgentStage {
  readonly task: ShelvedTask;
  /** As known now: what ran may have added to it. */
  readonly proof: ProofInit;
  /** Of what ran while it was prepared. */
  readonly usage: StageUsage;
  /** Beyond the agent's limit: what has not answered by then has lost it. */
  readonly graceMs: number;
  /** Proves again what was proved when it was prepared, and must still be true. */
  prove(): Promise<void>;
  /** Runs the agent to its end. Rejects when it cannot be told what became of it. */
  run(order: AgentOrder): Promise<ExecResult>;
  /** Of the whole stage, once the agent has ended. */
  measured(): Promise<{ readonly nDenied?: number; readonly modelMs?: number }>;
  /** Ends whatever is left and takes what it leaves. */
  end(result: ExecResult, tools: EndTools): Promise<TrialEnd>;
  /** Undefined where nothing can be kept. */
  keep(): Promise<KeptParts | undefined>;
  /** Removes everything. Idempotent. */
  release(): Promise<void>;
}
