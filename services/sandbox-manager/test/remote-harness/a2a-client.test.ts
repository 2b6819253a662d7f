/**
 * The manager's A2A side against the library's own server: agents that answer, stream, break off, reject, wait for
 * people, speak the old version. What is run is counted by the agent itself.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { type AgentCard, type Part, Role, TaskState } from "@a2a-js/sdk";
import {
  AgentEvent,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import { INVOCATION_EXTENSION, type InvocationRequest } from "@mortise/contracts";
import { systemClock } from "@mortise/kernel";
import express from "express";
import { afterEach, expect, test } from "vitest";
import { A2aAgent } from "../../src/remote/a2a-agent.js";
import { carried, failure, ID, REQUEST, RESULT, settings } from "./answers.js";

type Act = (say: Say, request: InvocationRequest) => Promise<void> | void;

interface Say {
  working(): void;
  artifact(id: string, part: Part["content"], isMore?: boolean): void;
  end(state: TaskState, data?: unknown): void;
  message(text: string): void;
  /** Breaks every connection there is. */
  breakOff(): void;
}

const part = (content: Part["content"]): Part => ({
  content,
  mediaType: "",
  filename: "",
  metadata: undefined,
});

class Agent {
  readonly heard: InvocationRequest[] = [];
  readonly cancelled: string[] = [];
  readonly #app = express();
  readonly #server = http.createServer(this.#app);
  url = "";

  static async start(act: Act, changes: (card: AgentCard) => AgentCard = (card) => card): Promise<Agent> {
    const agent = new Agent();
    await new Promise<void>((resolve) => agent.#server.listen(0, "127.0.0.1", resolve));
    agent.url = `http://127.0.0.1:${(agent.#server.address() as AddressInfo).port}`;
    const card = changes(cardAt(agent.url));
    const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), {
      execute: async (context: RequestContext, bus: ExecutionEventBus) => {
        const data = context.userMessage.parts[0]?.content?.value as InvocationRequest;
        agent.heard.push(data);
        await act(agent.#say(context, bus), data);
      },
      cancelTask: async (taskId: string, bus: ExecutionEventBus) => {
        agent.cancelled.push(taskId);
        agent.#say({ taskId, contextId: "c" } as RequestContext, bus).end(TaskState.TASK_STATE_CANCELED);
      },
    });
    const legacyCompat = { enabled: true };
    agent.#app.use(
      "/.well-known/agent-card.json",
      agentCardHandler({ agentCardProvider: handler, legacyCompat }),
    );
    agent.#app.use(
      "/",
      jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication, legacyCompat }),
    );
    return agent;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #say({ taskId, contextId }: Pick<RequestContext, "taskId" | "contextId">, bus: ExecutionEventBus): Say {
    const name = { taskId, contextId };
    const status = (state: TaskState, data: unknown) => ({
      state,
      timestamp: new Date().toISOString(),
      message: {
        messageId: crypto.randomUUID(),
        ...name,
        role: Role.ROLE_AGENT,
        parts: [part({ $case: "data", value: data })],
        metadata: undefined,
        extensions: [],
        referenceTaskIds: [],
      },
    });
    let isNamed = false;
    const named = (state: TaskState, data: unknown) => {
      if (isNamed)
        bus.publish(AgentEvent.statusUpdate({ ...name, status: status(state, data), metadata: undefined }));
      else
        bus.publish(
          AgentEvent.task({
            id: taskId,
            contextId,
            status: status(state, data),
            artifacts: [],
            history: [],
            metadata: undefined,
          }),
        );
      isNamed = true;
    };
    return {
      working: () => named(TaskState.TASK_STATE_WORKING, { phase: "running", atMs: 1 }),
      artifact: (id, content, isMore = false) =>
        bus.publish(
          AgentEvent.artifactUpdate({
            ...name,
            artifact: {
              artifactId: id,
              name: id,
              description: "",
              parts: [part(content)],
              metadata: undefined,
              extensions: [],
            },
            append: isMore,
            lastChunk: false,
            metadata: undefined,
          }),
        ),
      end: (state, data = {}) => {
        named(state, data);
        bus.finished();
      },
      message: (text) => {
        bus.publish(
          AgentEvent.message({
            messageId: crypto.randomUUID(),
            contextId,
            taskId: "",
            role: Role.ROLE_AGENT,
            parts: [part({ $case: "text", value: text })],
            metadata: undefined,
            extensions: [],
            referenceTaskIds: [],
          }),
        );
        bus.finished();
      },
      breakOff: () => this.#server.closeAllConnections(),
    };
  }
}

function cardAt(url: string, protocolVersion = "1.0"): AgentCard {
  return {
    name: "an agent",
    description: "",
    version: "3",
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion, tenant: "" }],
    provider: undefined,
    capabilities: {
      streaming: true,
      extensions: [{ uri: INVOCATION_EXTENSION, description: "", required: true, params: undefined }],
    },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ["application/json"],
    defaultOutputModes: ["application/json"],
    skills: [],
    signatures: [],
  };
}

const streams = (isStreaming: boolean) => (card: AgentCard) => ({
  ...card,
  capabilities: { ...card.capabilities!, streaming: isStreaming },
});

const completed: Act = (say) => {
  say.working();
  say.artifact("result", { $case: "data", value: RESULT });
  say.artifact("change", { $case: "raw", value: Buffer.from("first,") });
  say.artifact("change", { $case: "raw", value: Buffer.from("second") }, true);
  say.end(TaskState.TASK_STATE_COMPLETED);
};
const CHANGE = Buffer.from("first,second").toString("base64");

const running: Agent[] = [];
afterEach(async () => {
  for (const agent of running.splice(0)) await agent.stop();
});

async function serving(...argv: Parameters<typeof Agent.start>) {
  const server = await Agent.start(...argv);
  running.push(server);
  const times = settings({ url: server.url });
  const agent = new A2aAgent(times, "harness.x.remote", systemClock);
  return { server, agent, trial: carried(agent, times) };
}

test.each([
  ["a stream", (card: AgentCard) => card],
  ["asking again and again", streams(false)],
  [
    "v0.3",
    (card: AgentCard) => ({
      ...card,
      supportedInterfaces: cardAt(card.supportedInterfaces[0]!.url, "0.3").supportedInterfaces,
    }),
  ],
])("a result comes by %s, its bytes in pieces", async (_name, changes) => {
  const { server, agent, trial } = await serving(completed, changes);
  expect(await agent.look(AbortSignal.timeout(10_000))).toBe("an agent 3");
  expect(await trial.start()).toEqual({ ...RESULT, patch: CHANGE });
  expect(server.heard).toEqual([REQUEST]);
  expect(trial.handles[0]).toEqual({ id: ID, task: expect.stringMatching(/^[0-9a-f-]{36}$/) });
});

test("a stream that breaks off is taken up by the task's id; nothing is sent twice", async () => {
  const { server, trial } = await serving(async (say) => {
    say.working();
    await new Promise((resolve) => setTimeout(resolve, 100));
    say.breakOff();
    say.artifact("result", { $case: "data", value: RESULT });
    say.end(TaskState.TASK_STATE_COMPLETED);
  });
  expect(await trial.start()).toEqual(RESULT);
  expect(server.heard).toHaveLength(1);
});

test("a connection that breaks before a task is named is followed by a question, never by the message again", async () => {
  const { server, trial } = await serving((say, { kind }) => {
    if (kind === "start") {
      say.breakOff();
      return new Promise(() => undefined);
    }
    return completed(say, REQUEST);
  });
  expect(await trial.start()).toMatchObject({ id: ID });
  expect(server.heard.map(({ kind }) => kind)).toEqual(["start", "attach"]);
});

test("a rejected message may be sent again; what was accepted may not", async () => {
  const { server, trial } = await serving((say, request) => {
    if (server.heard.length > 1) return completed(say, request);
    say.end(TaskState.TASK_STATE_REJECTED, { code: "MORTISE_HARNESS_REMOTE_REFUSED", message: "full" });
  });
  expect(await trial.start()).toMatchObject({ id: ID });
  expect(server.heard.map(({ kind }) => kind)).toEqual(["start", "start"]);
});

test("a task the runtime has no more is lost", async () => {
  const { trial } = await serving(completed);
  expect(await failure(trial.takeUp({ id: ID, task: "gone" }))).toMatchObject({
    code: "MORTISE_HARNESS_REMOTE_LOST",
    message: expect.stringContaining("no task gone"),
  });
});

test("a trial that is ended cancels the task at the agent", async () => {
  const { server, trial } = await serving((say) => {
    say.working();
    return new Promise(() => undefined);
  });
  const outcome = trial.start();
  await expect.poll(() => trial.handles.length).toBe(1);
  trial.abort.abort();
  expect(await outcome).toBe("cancelled");
  expect(server.cancelled).toEqual([trial.handles[0]!.task]);
});

test.each<[string, Act, string]>([
  ["answers with words", (say) => say.message("Hello."), "not with a task"],
  ["waits for people", (say) => say.end(TaskState.TASK_STATE_INPUT_REQUIRED), "INPUT_REQUIRED"],
  ["ends without a result", (say) => say.end(TaskState.TASK_STATE_COMPLETED), "without a result"],
  [
    "gives the result of another",
    (say) => {
      say.working();
      say.artifact("result", { $case: "data", value: { ...RESULT, id: "r1.t2" } });
      say.end(TaskState.TASK_STATE_COMPLETED);
    },
    "r1.t2",
  ],
  [
    "gives a malformed result",
    (say) => {
      say.working();
      say.artifact("result", { $case: "data", value: { ...RESULT, outcome: { kind: "fine" } } });
      say.end(TaskState.TASK_STATE_COMPLETED);
    },
    "outcome",
  ],
  [
    "gives more than is taken",
    (say) => {
      say.working();
      for (let piece = 0; piece < 12; piece++)
        say.artifact("change", { $case: "raw", value: Buffer.alloc(1024 * 1024) }, piece > 0);
      say.end(TaskState.TASK_STATE_COMPLETED);
    },
    "more than",
  ],
])("an agent that %s is of no use, and says why", async (_name, act, words) => {
  const { trial } = await serving(act);
  expect(await failure(trial.start())).toMatchObject({
    code: "MORTISE_HARNESS_REMOTE_ANSWER",
    message: expect.stringContaining(words),
  });
});

test.each<[string, (card: AgentCard) => AgentCard, string]>([
  [
    "does not name the extension",
    (card) => ({ ...card, capabilities: { ...card.capabilities!, extensions: [] } }),
    INVOCATION_EXTENSION,
  ],
  [
    "leads elsewhere",
    (card) => ({ ...card, supportedInterfaces: cardAt("http://198.51.100.7").supportedInterfaces }),
    "198.51.100.7",
  ],
])("a card that %s is refused before anything is sent", async (_name, changes, words) => {
  const { server, agent, trial } = await serving(completed, changes);
  const refusal = { code: "MORTISE_HARNESS_REMOTE_ANSWER", message: expect.stringContaining(words) };
  expect(await failure(agent.look(AbortSignal.timeout(10_000)))).toMatchObject(refusal);
  expect(await failure(trial.start())).toMatchObject(refusal);
  expect(server.heard).toEqual([]);
});
