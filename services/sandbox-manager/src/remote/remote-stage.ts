/**
 * Owns the agent stage of a trial whose agent runs in a remote runtime: what is asked of it before, the invocation, what
 * its answer becomes. Does not speak its protocol (follow.ts) and does not report (trial/).
 *
 * S1  Nothing about the agent's confinement is proved here. The record names what is not, and what the runtime says of
 *     itself as a claim; a run that has not allowed it gets no such trial.
 * S2  The change goes to grading as one taken here does, or not at all (change.ts).
 */
import { ERROR_CATALOGUE, type InvocationResult, type LaunchWork, MortiseError } from "@mortise/contracts";
import type { DiffLimits, ExecResult, Usage } from "../backend/types.js";
import { putContent } from "../content-store.js";
import { limitsFor, patchLimits } from "../limits.js";
import type { ShelvedTask } from "../shelf/tasks.js";
import type { AgentOrder, AgentStage } from "../trial/agent-stage.js";
import { type EndTools, type TrialEnd, trialEnd } from "../trial/end.js";
import type { RemoteEntry } from "../trial/lease-journal.js";
import type { ManagerContext } from "../trial/manager-context.js";
import type { ProofInit } from "../trial/reports.js";
import { ConnectionBroke, type RemoteHandle } from "./agent.js";
import { changeOf } from "./change.js";
import { carryOut, type Following, takeUp } from "./follow.js";
import { assertRemotable, invocationOf } from "./invocation.js";
import type { ConfiguredRemote } from "./remote-harnesses.js";

const LOOK_MS = 30_000;
const CANCEL_GRACE_MS = 30_000;
/** Larger than any transcript this manager would take itself, which holds at most 32 MiB before compression. */
const MAX_TRANSCRIPT_BYTES = 48 * 1024 * 1024;

const UNPROVEN = [
  "egress: nothing shows what the agent could reach besides the model",
  "history and answers: nothing shows that the task's history and answers were out of the agent's reach",
  "the image and the harness are those the runtime says it used",
  "the change was taken by the runtime, not from outside its agent's machine by this manager",
];

export interface RemoteTools {
  readonly context: ManagerContext;
  readonly remote: ConfiguredRemote;
  readonly task: ShelvedTask;
  /** Of the change. */
  readonly limits: DiffLimits;
}

/** S1. Asks the runtime whether it is there. Rejects with MORTISE_HARNESS_REMOTE_UNPROVEN, _REFUSED, _DENIED, … */
export async function prepareRemote(
  work: LaunchWork,
  { context, remote, task }: Omit<RemoteTools, "limits">,
): Promise<RemoteStage> {
  assertRemotable(work, task.task);
  const { limits: asked, overrides } = work;
  const limits = patchLimits(limitsFor(context.site.sandbox, task.task, { limits: asked, overrides }));
  try {
    const agent = await remote.agent.look(AbortSignal.timeout(LOOK_MS));
    return new RemoteStage({ context, remote, task, limits }, agent, work);
  } catch (error) {
    if (!(error instanceof ConnectionBroke)) throw error;
    throw new MortiseError({
      code: "MORTISE_HARNESS_REMOTE_REFUSED",
      message: `${remote.agent.url} cannot be reached: ${error.message}`,
      cause: error,
    });
  }
}

/** @throws MortiseError MORTISE_HARNESS_REMOTE_UNPROVEN */
export function assertAllowed({ allowUnproven, harness }: LaunchWork): void {
  if (allowUnproven) return;
  throw new MortiseError({
    code: "MORTISE_HARNESS_REMOTE_UNPROVEN",
    message: `harness ${harness} runs in a remote runtime, and rollout.unproven of the run is refuse.`,
    detail: { field: "rollout.unproven" },
  });
}

export class RemoteStage implements AgentStage {
  readonly usage = {};
  readonly #tools: RemoteTools;
  readonly #agent: string;
  readonly #work: LaunchWork | undefined;
  #result: InvocationResult | undefined;
  #handle: RemoteHandle | undefined;
  #claims: ProofInit["remote"] = {};

  /**
   * @param agent name and version it gave itself
   * @param work absent for an invocation that an earlier process began: it is only taken up
   */
  constructor(tools: RemoteTools, agent: string, work?: LaunchWork) {
    this.#tools = tools;
    this.#agent = agent;
    this.#work = work;
  }

  /** What is given up is given up by follow.ts, which knows why. */
  get graceMs(): number {
    const { startTimeoutMs, graceMs, reattachTimeoutMs } = this.#tools.remote.settings;
    return startTimeoutMs + graceMs + reattachTimeoutMs + CANCEL_GRACE_MS;
  }

  get task(): ShelvedTask {
    return this.#tools.task;
  }

  get proof(): ProofInit {
    const { agent } = this.#tools.remote;
    return {
      reachable: "unknown: the agent runs in a remote runtime",
      unproven: UNPROVEN,
      remote: {
        ...this.#claims,
        protocol: agent.protocol,
        url: agent.url,
        agent: this.#agent,
        task: this.#handle?.task ?? "",
      },
    };
  }

  async prove(): Promise<void> {
    // There is nothing to prove (S1).
  }

  async run({ limitMs, signal, onRemote }: AgentOrder): Promise<ExecResult> {
    const { remote, task, context } = this.#tools;
    if (this.#work === undefined) throw new Error("an invocation that was taken up is not begun again");
    const site = context.site.sandbox;
    const request = await invocationOf({ work: this.#work, task, remote, site, limitMs });
    const onHandle = (handle: RemoteHandle) => {
      this.#handle = handle;
      const { id, digest } = { ...task.task, digest: task.digest };
      onRemote({
        handle,
        harness: remote.name,
        agent: this.#agent,
        task: { id, digest },
        limitMs,
        limits: this.#tools.limits,
      });
    };
    const answer = await carryOut(request, this.#following({ limitMs, signal, onHandle }));
    return this.#answered(answer, signal);
  }

  /** Goes on with what an earlier process began. */
  async takeUp({ handle, limitMs }: RemoteEntry, signal: AbortSignal): Promise<ExecResult> {
    this.#handle = handle;
    const onHandle = (found: RemoteHandle) => {
      this.#handle = found;
    };
    const answer = await takeUp(handle, this.#following({ limitMs, signal, onHandle }));
    return this.#answered(answer, signal);
  }

  async measured(): Promise<{ nDenied?: number; modelMs?: number }> {
    const { usage, timings } = this.#result ?? { usage: {}, timings: {} as { modelMs?: number } };
    return {
      ...(usage.nDenied === undefined ? {} : { nDenied: usage.nDenied }),
      ...(timings.modelMs === undefined ? {} : { modelMs: timings.modelMs }),
    };
  }

  /** S2. Rejects with MORTISE_HARNESS_REMOTE_ANSWER. */
  async end(result: ExecResult, tools: EndTools): Promise<TrialEnd> {
    const answer = this.#result;
    const patch = answer && (await changeOf(answer, this.task.workspace, this.#tools.limits));
    return trialEnd(
      {
        result,
        isModelUnreachable: answer?.isModelUnreachable ?? false,
        end: answer?.end ?? { kind: "agent-crash", reason: "" },
        patch,
        outputTail: answer?.outputTail ?? "",
        harnessVersion: answer?.harness.version ?? "",
        more: await this.#transcript(tools),
      },
      tools,
    );
  }

  async keep(): Promise<undefined> {
    return undefined;
  }

  async release(): Promise<void> {
    // The runtime has removed what it made; nothing of it is here.
  }

  async #transcript({ bus }: EndTools) {
    const transcript = this.#result?.transcript;
    if (transcript === undefined) return {};
    const archive = Buffer.from(transcript.archive, "base64");
    if (archive.byteLength > MAX_TRANSCRIPT_BYTES) return { transcriptTruncated: true };
    return {
      transcript: await putContent(bus, archive),
      transcriptFiles: transcript.nFiles,
      transcriptTruncated: transcript.isTruncated,
    };
  }

  /** Rejects with the runtime's reason when its agent did not start. */
  async #answered(answer: InvocationResult | "cancelled", signal: AbortSignal): Promise<ExecResult> {
    if (answer === "cancelled") return execResult({ kind: "cancelled" }, 0);
    this.#result = answer;
    const { timings, place, outcome, usage } = answer;
    this.#claims = {
      prepareMs: timings.prepareMs,
      agentMs: timings.agentMs,
      collectMs: timings.collectMs,
      ...(place === undefined ? {} : { claims: await this.#tools.context.records.put(place) }),
    };
    if (outcome.kind === "refused") throw refusalOf(outcome);
    // It was not us who cancelled it.
    const isTheirs = outcome.kind === "cancelled" && !signal.aborted;
    const own = isTheirs ? ({ kind: "lost", reason: "the remote runtime stopped it" } as const) : outcome;
    return { ...execResult(own, timings.agentMs), usage: measuredOf(usage) };
  }

  #following(own: Pick<Following, "limitMs" | "signal" | "onHandle">): Following {
    const { remote, context } = this.#tools;
    return { agent: remote.agent, times: remote.settings, clock: context.clock, log: context.log, ...own };
  }
}

/** Without what was not measured (C10). */
function measuredOf(usage: InvocationResult["usage"]): Usage {
  return Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== undefined));
}

/** In the runtime's words, and under its code where that is one of ours: it may lie in the task. */
function refusalOf({
  reason,
  code,
}: {
  readonly reason: string;
  readonly code?: string | undefined;
}): MortiseError {
  const isKnown = (name: string | undefined): name is keyof typeof ERROR_CATALOGUE =>
    name !== undefined && Object.hasOwn(ERROR_CATALOGUE, name);
  return new MortiseError({
    code: isKnown(code) ? code : "MORTISE_HARNESS_REMOTE_REFUSED",
    message: `The remote runtime: ${reason}`,
  });
}

function execResult(outcome: InvocationResult["outcome"], wallMs: number): ExecResult {
  const none = { bytes: new Uint8Array(0), totalBytes: 0, isTruncated: false };
  return { outcome, stdout: none, stderr: none, usage: {}, wallMs, isInsecure: true };
}
