/**
 * Owns invocations as tasks of the A2A protocol: what a message asks, how a task's states and its artifacts tell what
 * became of it. A second message with the id of the first makes a second task about the same invocation, never a second
 * run. Does not decide what is begun (invocation/).
 */
import { type Artifact, type Message, type Part, Role, type Task, TaskState } from "@a2a-js/sdk";
import {
  AgentEvent,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import {
  InvocationRequest,
  type InvocationResult,
  MortiseError,
  PATCH_MEDIA_TYPE,
  TRANSCRIPT_MEDIA_TYPE,
} from "@mortise/contracts";
import { fromUnknown } from "@mortise/kernel";
import { z } from "zod";
import type { Invocation, Invocations } from "../invocation/invocations.js";
import { unknown } from "./agentcore.js";

const JSON_MEDIA_TYPE = "application/json";
/** Far below the 4 MiB that the library takes of one event, in base64. */
const PIECE_BYTES = 1024 * 1024;
/** A stream that is silent is taken for dead by what lies between. */
const HEARTBEAT_MS = 15_000;

interface TaskName {
  readonly taskId: string;
  readonly contextId: string;
}

export class InvocationExecutor implements AgentExecutor {
  readonly #invocations: Invocations;
  readonly #byTask = new Map<string, Invocation>();

  constructor(invocations: Invocations) {
    this.#invocations = invocations;
  }

  execute = async (context: RequestContext, bus: ExecutionEventBus): Promise<void> => {
    const { taskId, contextId } = context;
    const name = { taskId, contextId };
    const say = (state: TaskState, data: unknown) =>
      bus.publish(
        AgentEvent.statusUpdate({ ...name, status: status(name, state, data), metadata: undefined }),
      );
    let invocation: Invocation;
    try {
      invocation = this.#asked(context.userMessage);
    } catch (error) {
      const { code, message } = fromUnknown(error, "MORTISE_HARNESS_REMOTE_REFUSED");
      bus.publish(AgentEvent.task(submitted(name, TaskState.TASK_STATE_REJECTED, { code, message })));
      bus.finished();
      return;
    }
    this.#byTask.set(taskId, invocation);
    bus.publish(AgentEvent.task(submitted(name, TaskState.TASK_STATE_SUBMITTED, invocation.status)));
    const working = () => say(TaskState.TASK_STATE_WORKING, invocation.status);
    const unfollow = invocation.follow(working);
    const heartbeat = setInterval(working, HEARTBEAT_MS);
    const result = await invocation.result.finally(() => {
      clearInterval(heartbeat);
      unfollow();
      this.#byTask.delete(taskId);
    });
    for (const { isMore, ...one } of artifacts(result))
      bus.publish(
        AgentEvent.artifactUpdate({
          ...name,
          artifact: one,
          append: isMore,
          lastChunk: false,
          metadata: undefined,
        }),
      );
    say(finalState(result), { phase: "ended", outcome: result.outcome });
    bus.finished();
  };

  cancelTask = async (taskId: string): Promise<void> => {
    this.#byTask.get(taskId)?.cancel();
  };

  /** @throws MortiseError */
  #asked({ parts }: Message): Invocation {
    const data = parts.find(({ content }) => content?.$case === "data")?.content?.value;
    const parsed = InvocationRequest.safeParse(data);
    if (!parsed.success)
      throw new MortiseError({
        code: "MORTISE_HARNESS_REMOTE_ANSWER",
        message: `the message's data part: ${z.prettifyError(parsed.error)}`,
      });
    const request = parsed.data;
    if (request.kind === "start") return this.#invocations.start(request);
    const known = this.#invocations.find(request.id);
    if (known === undefined) throw unknown(request.id);
    if (request.kind === "cancel") known.cancel();
    return known;
  }
}

function submitted(name: TaskName, state: TaskState, data: unknown): Task {
  return {
    id: name.taskId,
    contextId: name.contextId,
    status: status(name, state, data),
    artifacts: [],
    history: [],
    metadata: undefined,
  };
}

function status(name: TaskName, state: TaskState, data: unknown): NonNullable<Task["status"]> {
  return {
    state,
    timestamp: new Date().toISOString(),
    message: {
      messageId: crypto.randomUUID(),
      ...name,
      role: Role.ROLE_AGENT,
      parts: [dataPart(data)],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
  };
}

function finalState({ outcome: { kind } }: InvocationResult): TaskState {
  if (kind === "cancelled") return TaskState.TASK_STATE_CANCELED;
  return kind === "refused" || kind === "lost" ? TaskState.TASK_STATE_FAILED : TaskState.TASK_STATE_COMPLETED;
}

/**
 * The result, and what is bytes in it as artifacts of their own, in pieces: readers of event streams bound one event.
 */
function* artifacts({
  patch,
  transcript,
  ...rest
}: InvocationResult): Generator<Artifact & { isMore: boolean }> {
  const { archive, ...about } = transcript ?? { archive: undefined };
  const shown = transcript === undefined ? {} : { transcript: { ...about, archive: "" } };
  yield { ...artifact("result", [dataPart({ ...rest, ...shown })]), isMore: false };
  yield* pieces("change", PATCH_MEDIA_TYPE, patch);
  yield* pieces("transcript", TRANSCRIPT_MEDIA_TYPE, archive);
}

function* pieces(id: string, mediaType: string, base64: string | undefined) {
  if (base64 === undefined) return;
  const bytes = Buffer.from(base64, "base64");
  for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES)
    yield {
      ...artifact(id, [rawPart(bytes.subarray(at, at + PIECE_BYTES), mediaType, id)]),
      isMore: at > 0,
    };
}

function artifact(id: string, parts: Part[]): Artifact {
  return { artifactId: id, name: id, description: "", parts, metadata: undefined, extensions: [] };
}

function dataPart(value: unknown): Part {
  return {
    content: { $case: "data", value },
    mediaType: JSON_MEDIA_TYPE,
    filename: "",
    metadata: undefined,
  };
}

function rawPart(bytes: Uint8Array, mediaType: string, filename: string): Part {
  return {
    content: { $case: "raw", value: Buffer.from(bytes) },
    mediaType,
    filename,
    metadata: undefined,
  };
}
