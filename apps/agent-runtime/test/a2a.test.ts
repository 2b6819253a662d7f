/**
 * The A2A front of a real agent runtime, held against the library's own client and against v0.3 calls written by hand:
 * card, messages and their streams, tasks asked for and cancelled, what is rejected.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Part, Role, type Task, TaskState } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  JsonRpcTransportFactory,
} from "@a2a-js/sdk/client";
import { INVOCATION_EXTENSION, INVOCATION_SCHEMA, type InvocationRequest } from "@mortise/contracts";
import { decodePatch } from "@mortise/sandbox-manager";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { FakeModel } from "../../../services/sandbox-manager/test/manager-world.js";
import { eventually } from "./patience.js";
import { isRoot } from "./places.js";
import { REPAIRED, startRequest } from "./requests.js";
import { RuntimeProcess } from "./runtime-process.js";

let scratch: string;
let model: FakeModel;
let runtime: RuntimeProcess;
let client: Client;

/** As a client that knows the extension. */
function authorized(token: string, extensions = INVOCATION_EXTENSION): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set("authorization", `Bearer ${token}`);
    for (const name of ["a2a-extensions", "x-a2a-extensions"]) headers.set(name, extensions);
    return fetch(input, { ...init, headers });
  };
}

function clientWith(token: string, extensions?: string): Promise<Client> {
  const transports = [new JsonRpcTransportFactory({ fetchImpl: authorized(token, extensions) })];
  return new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports }),
  ).createFromUrl(runtime.url);
}

function sending(request: InvocationRequest | string, returnImmediately = false) {
  const content =
    typeof request === "string"
      ? { $case: "text" as const, value: request }
      : { $case: "data" as const, value: request };
  return {
    tenant: "",
    message: {
      messageId: crypto.randomUUID(),
      contextId: "",
      taskId: "",
      role: Role.ROLE_USER,
      parts: [{ content, mediaType: "application/json", filename: "", metadata: undefined }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately },
    metadata: undefined,
  };
}

const taskNamed = (id: string) => ({ tenant: "", id, metadata: undefined });
const dataOf = (parts: readonly Part[] | undefined) =>
  parts?.flatMap(({ content }) => (content?.$case === "data" ? [content.value] : []))[0];
const bytesOf = (task: Task, id: string) =>
  Buffer.concat(
    task.artifacts
      .filter(({ artifactId }) => artifactId === id)
      .flatMap(({ parts }) =>
        parts.flatMap(({ content }) => (content?.$case === "raw" ? [content.value] : [])),
      ),
  );

describe.runIf(isRoot)("the A2A front", () => {
  beforeAll(async () => {
    scratch = mkdtempSync(path.join(tmpdir(), "mortise-a2a-"));
    model = await FakeModel.start();
    runtime = new RuntimeProcess({
      directory: path.join(scratch, "runtime"),
      place: "auto",
      limits: "maxInvocations = 1\nmaxRemembered = 3",
    });
    await runtime.start();
    client = await clientWith(runtime.token);
  });
  afterEach(() => model.reset());
  afterAll(async () => {
    await runtime?.stop();
    await model?.stop();
    rmSync(scratch, { recursive: true, force: true });
  });

  test("shows a card to anyone and takes calls from who has the token", async () => {
    const card = await client.getAgentCard();
    expect(card).toMatchObject({ name: "mortise-agent-runtime", capabilities: { streaming: true } });
    expect(card.capabilities?.extensions).toEqual([
      expect.objectContaining({ uri: INVOCATION_EXTENSION, params: { harnesses: ["mini", "scripted"] } }),
    ]);
    const stranger = await clientWith("other");
    await expect(stranger.getTask(taskNamed("x"))).rejects.toThrow("401");
    const ignorant = await clientWith(runtime.token, "urn:other");
    const request = await startRequest(scratch, model);
    await expect(ignorant.sendMessage(sending(request))).rejects.toThrow(INVOCATION_EXTENSION);
    expect(model.requests).toHaveLength(0);
  });

  test("a message becomes a task whose stream ends with the change", async () => {
    // More than one event of the library's client may hold.
    const big = Object.fromEntries(["a", "b", "c", "d"].map((name) => [name, name.repeat(1_000_000)]));
    model.reply = { write: { "src/add.cjs": REPAIRED, ...big } };
    const request = await startRequest(scratch, model);
    const states: TaskState[] = [];
    let id = "";
    for await (const { payload } of client.sendMessageStream(sending(request))) {
      if (payload?.$case === "task") {
        id = payload.value.id;
        states.push(payload.value.status!.state);
      }
      if (payload?.$case === "statusUpdate") states.push(payload.value.status!.state);
    }
    expect([...new Set(states)]).toEqual([
      TaskState.TASK_STATE_SUBMITTED,
      TaskState.TASK_STATE_WORKING,
      TaskState.TASK_STATE_COMPLETED,
    ]);
    const task = await client.getTask(taskNamed(id));
    expect(dataOf(task.artifacts[0]!.parts)).toMatchObject({
      id: request.id,
      outcome: { kind: "exited", code: 0 },
    });
    const patch = await decodePatch(bytesOf(task, "change"));
    expect(patch.entries.map((entry) => entry.path)).toEqual(["a", "b", "c", "d", "src/add.cjs"]);
    const whole = JSON.stringify(
      await client.listTasks({
        tenant: "",
        contextId: "",
        status: TaskState.TASK_STATE_UNSPECIFIED,
        pageToken: "",
        statusTimestampAfter: undefined,
        includeArtifacts: true,
      }),
    );
    for (const secret of ["the-session-token", runtime.token]) {
      expect(whole + JSON.stringify(task)).not.toContain(secret);
      expect(runtime.output).not.toContain(secret);
    }
  });

  test("a task is cancelled by its id; a second task of the same invocation is the same run", async () => {
    model.reply = { hang: true };
    const request = await startRequest(scratch, model);
    const first = (await client.sendMessage(sending(request, true))) as Task;
    const second = (await client.sendMessage(sending(request, true))) as Task;
    expect(second.id).not.toBe(first.id);
    await eventually(async () => model.requests.length).toBe(1);
    const cancelled = await client.cancelTask(taskNamed(first.id));
    expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    await eventually(async () => (await client.getTask(taskNamed(second.id))).status?.state).toBe(
      TaskState.TASK_STATE_CANCELED,
    );
    expect(model.requests).toHaveLength(1);
  });

  test("a stream that is lost is taken up by the task's id", async () => {
    model.reply = { hang: true };
    const request = await startRequest(scratch, model);
    const { id } = (await client.sendMessage(sending(request, true))) as Task;
    await eventually(async () => model.requests.length).toBe(1);
    const heard: TaskState[] = [];
    for await (const { payload } of client.resubscribeTask({ tenant: "", id })) {
      if (payload?.$case === "task")
        await runtime.post({ schema: INVOCATION_SCHEMA, kind: "cancel", id: request.id });
      if (payload?.$case === "statusUpdate") heard.push(payload.value.status!.state);
    }
    expect(heard.at(-1)).toBe(TaskState.TASK_STATE_CANCELED);
  });

  test("what is no invocation, or comes when it is full, is rejected with the reason and not run", async () => {
    const rejected = async (request: InvocationRequest | string) => {
      const { status } = (await client.sendMessage(sending(request))) as Task;
      expect(status?.state).toBe(TaskState.TASK_STATE_REJECTED);
      return dataOf(status?.message?.parts) as { code: string; message: string };
    };
    expect(await rejected("Repair it, please.")).toMatchObject({ code: "MORTISE_HARNESS_REMOTE_ANSWER" });
    expect(await rejected({ schema: INVOCATION_SCHEMA, kind: "attach", id: "r1.none" })).toMatchObject({
      code: "MORTISE_HARNESS_REMOTE_LOST",
    });
    model.reply = { hang: true };
    const request = await startRequest(scratch, model);
    const running = (await client.sendMessage(sending(request, true))) as Task;
    await eventually(async () => model.requests.length).toBe(1);
    expect(await rejected(await startRequest(scratch, model))).toMatchObject({
      code: "MORTISE_HARNESS_REMOTE_REFUSED",
      message: expect.stringContaining("1 invocations run"),
    });
    await client.cancelTask(taskNamed(running.id));
    await expect(client.getTask(taskNamed("none"))).rejects.toThrow(/not found/i);
    expect(model.requests).toHaveLength(1);
  });

  test("speaks v0.3: message/send, message/stream, tasks/get and tasks/cancel", async () => {
    const call = async (method: string, params: object) => {
      const response = await authorized(runtime.token)(runtime.url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      });
      return response;
    };
    const message = (request: InvocationRequest) => ({
      message: {
        kind: "message",
        messageId: crypto.randomUUID(),
        role: "user",
        parts: [{ kind: "data", data: request }],
      },
    });
    model.reply = { write: { "src/add.cjs": REPAIRED } };
    const sent = (await (await call("message/send", message(await startRequest(scratch, model)))).json()) as {
      result: { id: string; kind: string; status: { state: string } };
    };
    expect(sent.result).toMatchObject({ kind: "task", status: { state: "completed" } });
    const got = (await (await call("tasks/get", { id: sent.result.id })).json()) as {
      result: { artifacts: { artifactId: string; parts: { kind: string; file?: { bytes: string } }[] }[] };
    };
    const change = got.result.artifacts.find(({ artifactId }) => artifactId === "change")!;
    const bytes = Buffer.concat(change.parts.map(({ file }) => Buffer.from(file!.bytes, "base64")));
    expect((await decodePatch(bytes)).entries).toHaveLength(1);

    model.reply = { hang: true };
    const stream = await call("message/stream", message(await startRequest(scratch, model)));
    expect(stream.headers.get("content-type")).toContain("text/event-stream");
    const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes('"working"')) text += (await reader.read()).value ?? "";
    const [, id] = /"(?:taskId|id)":"([0-9a-f-]{36})"/.exec(text)!;
    await eventually(async () => model.requests.length).toBe(2);
    const cancelled = (await (await call("tasks/cancel", { id })).json()) as {
      result: { status: { state: string } };
    };
    expect(cancelled.result.status.state).toBe("canceled");
    await reader.cancel();
  });
});
