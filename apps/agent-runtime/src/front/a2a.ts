/**
 * Owns invocations as tasks of the A2A protocol: what a message asks, how a task's states and its artifact tell what
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
const ARTIFACT_ID = "result";
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
    bus.publish(
      AgentEvent.artifactUpdate({
        ...name,
        artifact: artifact(result),
        append: false,
        lastChunk: true,
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

/** Bytes are parts of their own: they need no second base64 in it. */
function artifact({ patch, transcript, ...rest }: InvocationResult): Artifact {
  const { archive, ...about } = transcript ?? { archive: "" };
  return {
    artifactId: ARTIFACT_ID,
    name: "result",
    description: "What became of the invocation, the change and the harness's own transcript.",
    parts: [
      dataPart({ ...rest, ...(transcript === undefined ? {} : { transcript: { ...about, archive: "" } }) }),
      ...(patch === undefined ? [] : [rawPart(patch, PATCH_MEDIA_TYPE, "change.tar")]),
      ...(transcript === undefined ? [] : [rawPart(archive, TRANSCRIPT_MEDIA_TYPE, "transcript.tar.gz")]),
    ],
    metadata: undefined,
    extensions: [],
  };
}

function dataPart(value: unknown): Part {
  return {
    content: { $case: "data", value },
    mediaType: JSON_MEDIA_TYPE,
    filename: "",
    metadata: undefined,
  };
}

function rawPart(base64: string, mediaType: string, filename: string): Part {
  return {
    content: { $case: "raw", value: Buffer.from(base64, "base64") },
    mediaType,
    filename,
    metadata: undefined,
  };
}
