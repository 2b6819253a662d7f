/**
 * Owns reading a task of the A2A protocol: its states, what the runtime says while it works, its artifacts as a result.
 * Hears streams and whole tasks alike. Asks nothing.
 */
import { type Artifact, type Part, type StreamResponse, TaskState, type TaskStatus } from "@a2a-js/sdk";
import { InvocationResult, InvocationStatus, MortiseError } from "@mortise/contracts";
import { z } from "zod";
import type { Watch } from "./agent.js";

const ENDED: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
]);
const WAITS_FOR_PEOPLE: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_INPUT_REQUIRED,
  TaskState.TASK_STATE_AUTH_REQUIRED,
]);

const Rejection = z.object({ code: z.string(), message: z.string() });

export class A2aTask {
  readonly #id: string;
  readonly #watch: Watch;
  readonly #artifacts = new Map<string, Part[]>();
  #name: string | undefined;
  #status: TaskStatus | undefined;

  /** @param id of the invocation */
  constructor(id: string, watch: Watch) {
    this.#id = id;
    this.#watch = watch;
  }

  /** The runtime's id of it. */
  get name(): string | undefined {
    return this.#name;
  }

  get hasEnded(): boolean {
    return this.#status !== undefined && ENDED.has(this.#status.state);
  }

  /** @throws MortiseError MORTISE_HARNESS_REMOTE_ANSWER for what no invocation gives */
  hear(payload: StreamResponse["payload"]): void {
    switch (payload?.$case) {
      case "task":
        this.#named(payload.value.id, payload.value.status);
        for (const artifact of payload.value.artifacts)
          this.#artifacts.set(artifact.artifactId, artifact.parts);
        break;
      case "statusUpdate":
        this.#named(payload.value.taskId, payload.value.status);
        break;
      case "artifactUpdate":
        this.#take(payload.value.artifact, payload.value.append);
        break;
      case "message":
        throw unusable("it answers with a message, not with a task");
      case undefined:
    }
  }

  /**
   * What a task that has ended gave.
   * @throws MortiseError MORTISE_HARNESS_REMOTE_REFUSED, _LOST, _ANSWER
   */
  result(): InvocationResult {
    const state = this.#status?.state;
    if (state === TaskState.TASK_STATE_REJECTED) throw this.#rejection();
    const about = dataOf(this.#artifacts.get("result"));
    if (about === undefined) throw unusable(`the task ended without a result, as ${TaskState[state ?? 0]}`);
    const change = this.#artifacts.get("change");
    const transcript = this.#artifacts.get("transcript");
    const parsed = InvocationResult.safeParse({
      ...about,
      ...(change === undefined ? {} : { patch: base64Of(change) }),
      ...(transcript === undefined
        ? {}
        : { transcript: { ...(about.transcript as object), archive: base64Of(transcript) } }),
    });
    if (!parsed.success) throw unusable(`the result: ${z.prettifyError(parsed.error)}`);
    if (parsed.data.id !== this.#id) throw unusable(`the result is that of ${parsed.data.id}`);
    return parsed.data;
  }

  #named(name: string, status: TaskStatus | undefined): void {
    if (this.#name === undefined && status?.state !== TaskState.TASK_STATE_REJECTED)
      this.#watch.accepted({ id: this.#id, task: name });
    this.#name = name;
    this.#status = status;
    if (status === undefined) return;
    if (WAITS_FOR_PEOPLE.has(status.state)) throw unusable(`it waits for people: ${TaskState[status.state]}`);
    const said = InvocationStatus.safeParse(dataOf(status.message?.parts));
    if (said.success) this.#watch.status(said.data);
  }

  #take(artifact: Artifact | undefined, append: boolean): void {
    if (artifact === undefined) return;
    const before = append ? (this.#artifacts.get(artifact.artifactId) ?? []) : [];
    this.#artifacts.set(artifact.artifactId, [...before, ...artifact.parts]);
  }

  #rejection(): MortiseError {
    const said = Rejection.safeParse(dataOf(this.#status?.message?.parts));
    const message = said.success ? said.data.message : "the task was rejected without a reason";
    const isLost = said.success && said.data.code === "MORTISE_HARNESS_REMOTE_LOST";
    return new MortiseError({
      code: isLost ? "MORTISE_HARNESS_REMOTE_LOST" : "MORTISE_HARNESS_REMOTE_REFUSED",
      message,
    });
  }
}

function dataOf(parts: readonly Part[] | undefined): Record<string, unknown> | undefined {
  const content = parts?.find((part) => part.content?.$case === "data")?.content;
  const value: unknown = content?.$case === "data" ? content.value : undefined;
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}

function base64Of(parts: readonly Part[]): string {
  const pieces = parts.flatMap(({ content }) => (content?.$case === "raw" ? [content.value] : []));
  return Buffer.concat(pieces).toString("base64");
}

function unusable(message: string): MortiseError {
  return new MortiseError({ code: "MORTISE_HARNESS_REMOTE_ANSWER", message: `${message}.` });
}
