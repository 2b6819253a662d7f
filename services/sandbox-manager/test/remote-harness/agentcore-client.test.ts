/** The manager's AgentCore side against servers that break off, refuse, redirect, go silent or say too much. */
import http from "node:http";
import type { AddressInfo } from "node:net";
import type { InvocationRequest } from "@mortise/contracts";
import { afterEach, describe, expect, test } from "vitest";
import { AgentCoreAgent } from "../../src/remote/agentcore-agent.js";
import { carried, failure, ID, RESULT, settings } from "./answers.js";

type Answer = (response: http.ServerResponse, request: InvocationRequest) => void;

const servers: http.Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
});

async function serving(answers: readonly Answer[], changes: Parameters<typeof settings>[0] = {}) {
  const heard: InvocationRequest["kind"][] = [];
  const sessions = new Set<unknown>();
  const server = http.createServer(async (request, response) => {
    if (request.method === "GET") {
      const status = request.url?.startsWith("/base/ping?") ? "Healthy" : "Unhealthy";
      response.end(JSON.stringify({ status, time_of_last_update: 1 }));
      return;
    }
    let text = "";
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text) as InvocationRequest;
    sessions.add(request.headers["x-amzn-bedrock-agentcore-runtime-session-id"]);
    heard.push(body.kind);
    const answer = answers[Math.min(heard.length, answers.length) - 1]!;
    answer(response, body);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/base?qualifier=x`;
  const times = settings({ protocol: "agentcore", url, ...changes });
  const agent = new AgentCoreAgent(times, "harness.x.remote");
  return { heard, sessions, agent, trial: carried(agent, times) };
}

const event = (name: string, data: unknown) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const stream: Answer = (response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(event("status", { phase: "running", atMs: 1 }));
  response.end(event("result", RESULT));
};
const refusal =
  (status: number, message: string): Answer =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message } }));
  };

describe("a runtime", () => {
  test("answers as a stream or at once, always in the same session", async () => {
    const { agent, trial, heard, sessions } = await serving([
      stream,
      (response) => {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify(RESULT));
      },
    ]);
    expect(await agent.look(AbortSignal.timeout(10_000))).toContain("Healthy");
    expect(await trial.start()).toEqual(RESULT);
    expect(await trial.takeUp({ id: ID })).toEqual(RESULT);
    expect(heard).toEqual(["start", "attach"]);
    const [session, ...more] = sessions;
    expect([session, more]).toEqual([expect.stringMatching(/^mortise-[0-9a-f]{64}$/), []]);
  });

  test.each<[string, Answer]>([
    ["before it answers", (response) => response.destroy()],
    [
      "in the middle of a stream",
      (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(event("status", { phase: "running", atMs: 1 }), () => response.destroy());
      },
    ],
    [
      "at the end of a stream without a result",
      (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(event("status", { phase: "running", atMs: 1 }));
      },
    ],
    ["behind a gateway that says 502", refusal(502, "bad gateway")],
  ])("that is lost %s is asked for, and never started again", async (_name, answer) => {
    const { trial, heard } = await serving([answer, refusal(502, "still away"), stream]);
    expect(await trial.start()).toEqual(RESULT);
    expect(heard).toEqual(["start", "attach", "attach"]);
  });

  test("that is full is asked again, and what it then takes runs", async () => {
    const { trial, heard } = await serving([refusal(503, "full"), stream]);
    expect(await trial.start()).toEqual(RESULT);
    expect(heard).toEqual(["start", "start"]);
  });

  test("that stays full refuses the trial, which was never there", async () => {
    const { trial, heard } = await serving([refusal(503, "full of others")], { startTimeoutMs: 1_500 });
    expect(await failure(trial.start())).toMatchObject({
      code: "MORTISE_HARNESS_REMOTE_REFUSED",
      message: expect.stringContaining("full of others"),
    });
    expect(new Set(heard)).toEqual(new Set(["start"]));
  });

  test("that has forgotten loses the trial", async () => {
    const { trial, heard } = await serving([(response) => response.destroy(), refusal(404, "no invocation")]);
    expect(await failure(trial.start())).toMatchObject({ code: "MORTISE_HARNESS_REMOTE_LOST" });
    expect(heard).toEqual(["start", "attach", "cancel"]);
  });

  test("that goes silent is asked anew", async () => {
    const { trial, heard } = await serving(
      [
        (response) => {
          response.writeHead(200, { "content-type": "text/event-stream" });
          response.write(event("status", { phase: "running", atMs: 1 }));
        },
        stream,
      ],
      { silenceTimeoutMs: 500 },
    );
    expect(await trial.start()).toEqual(RESULT);
    expect(heard).toEqual(["start", "attach"]);
  });

  test("that outlives its agent's limit and grace is cancelled and lost", async () => {
    const hang: Answer = (response, { kind }) => {
      if (kind === "cancel") response.end("{}");
    };
    const { agent, heard } = await serving([hang]);
    const late = carried(agent, settings({ graceMs: 1 }), 300);
    expect(await failure(late.start())).toMatchObject({ code: "MORTISE_HARNESS_REMOTE_LOST" });
    expect(heard[0]).toBe("start");
  });

  test.each<[string, Answer, string]>([
    ["answers nonsense", (response) => response.end("<html>"), "result"],
    ["says that the request is malformed", refusal(400, "id: must be run.trial"), "must be run.trial"],
    ["answers too much", (response) => response.end("x".repeat(200_000)), "more than 100000 bytes"],
  ])("that %s is of no use, and says why", async (_name, answer, words) => {
    const { trial } = await serving([answer], { maxAnswerBytes: 100_000 });
    expect(await failure(trial.start())).toMatchObject({
      code: "MORTISE_HARNESS_REMOTE_ANSWER",
      message: expect.stringContaining(words),
    });
  });

  test("that sends callers elsewhere is not followed", async () => {
    const { trial, heard } = await serving([
      (response) => {
        response.writeHead(307, { location: "http://198.51.100.7/invocations" });
        response.end();
      },
      stream,
    ]);
    expect(await trial.start()).toEqual(RESULT);
    expect(heard).toEqual(["start", "attach"]);
  });

  test("that is unhealthy takes no trial", async () => {
    const { agent } = await serving([stream]);
    const { origin } = new URL(agent.url);
    const other = new AgentCoreAgent(settings({ url: `${origin}/other` }), "harness.x.remote");
    expect(await failure(other.look(AbortSignal.timeout(10_000)))).toMatchObject({
      code: "MORTISE_HARNESS_REMOTE_REFUSED",
    });
  });
});
