/** Owns the agent stage in a sandbox of this manager: what setup prepared, as a trial asks for it. */
import type { ExecResult, SandboxBackend } from "../backend/types.js";
import type { AgentOrder, AgentStage, KeptParts } from "./agent-stage.js";
import { type EndTools, endOf, type TrialEnd } from "./end.js";
import type { ManagerContext } from "./manager-context.js";
import { proofOf } from "./proof.js";
import type { Prepared } from "./setup.js";

/** The backend ends the agent at its limit. */
const GRACE_MS = 30_000;

export class LocalStage implements AgentStage {
  readonly graceMs = GRACE_MS;
  readonly #prepared: Prepared;
  readonly #tools: { readonly context: ManagerContext; readonly backend: SandboxBackend };

  constructor(prepared: Prepared, tools: { context: ManagerContext; backend: SandboxBackend }) {
    this.#prepared = prepared;
    this.#tools = tools;
  }

  get task() {
    return this.#prepared.task;
  }
  get proof() {
    return this.#prepared.proof;
  }
  get usage() {
    return this.#prepared.usage;
  }

  async prove(): Promise<void> {
    const { context, backend } = this.#tools;
    await proofOf(this.#prepared.sandbox, context.records, backend);
  }

  run({ token, limitMs, signal }: AgentOrder): Promise<ExecResult> {
    const { harness, sandbox, facts, user } = this.#prepared;
    return sandbox.exec({ ...harness.command({ ...facts, token }), user, timeoutMs: limitMs, signal });
  }

  /** Of the model only where the backend can tell when a request was open. */
  async measured(): Promise<{ nDenied?: number; modelMs?: number }> {
    const { sandbox } = this.#prepared;
    const { nDenied } = await sandbox.stats();
    const { modelTimeMs } = sandbox;
    return {
      ...(nDenied === undefined ? {} : { nDenied }),
      ...(modelTimeMs === undefined ? {} : { modelMs: modelTimeMs }),
    };
  }

  end(result: ExecResult, tools: EndTools): Promise<TrialEnd> {
    return endOf(this.#prepared, result, tools);
  }

  async keep(): Promise<KeptParts> {
    const { sandbox, mounts, limits } = this.#prepared;
    return { snapshot: await sandbox.snapshot(), mounts, limits };
  }

  release(): Promise<void> {
    return this.#prepared.release();
  }
}
