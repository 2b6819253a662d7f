/** A configured command is launched exactly as its configuration says, and nothing it is given is read twice. */
import { expect, test } from "vitest";
import { CommandHarness, commandAdapter, type LaunchTarget } from "../src/index.js";

const target: LaunchTarget = {
  runtime: "/opt/agent",
  home: "/home/agent",
  workspace: "/work",
  modelUrl: "http://127.0.0.1:8080",
  key: "session-key",
  model: "policy",
  wireApi: "chat",
  instruction: "fix {token} and {model}",
  contextTokens: 1000,
  maxOutputTokens: 100,
  node: "/usr/bin/node",
  python: "/usr/bin/python3",
  path: "/usr/bin:/bin",
};

const agent = CommandHarness.parse({
  name: "agent",
  argv: ["{runtime}/agent", "--task", "{instruction}", "--limit={context_tokens}"],
  environment: { OPENAI_BASE_URL: "{model_url}", ORIGIN: "{model_origin}", OPENAI_API_KEY: "{token}" },
  files: { "{home}/agent.json": '{"model": "{model}", "unknown": "{place}"}' },
  instruction: "In this repository: {instruction}",
  exitCodes: { "3": "proxy-failure" },
  tools: { run: { name: "sh", arguments: { script: "{command}", seconds: 5 } } },
});

test("placeholders of argv, environment and files are filled in", () => {
  const launch = commandAdapter(agent).launch(target);
  expect(launch.argv).toEqual(["/opt/agent/agent", "--task", "fix {token} and {model}", "--limit=1000"]);
  expect(launch.environment).toEqual({
    OPENAI_BASE_URL: "http://127.0.0.1:8080/v1",
    ORIGIN: "http://127.0.0.1:8080",
    OPENAI_API_KEY: "session-key",
    HOME: "/home/agent",
    PATH: "/usr/bin:/bin",
  });
  expect(launch.files).toEqual([
    { path: "/home/agent/agent.json", content: '{"model": "policy", "unknown": "{place}"}' },
  ]);
});

test("the instruction's template and the tool's arguments take what they are given as it is", () => {
  const adapter = commandAdapter(agent);
  expect(adapter.instruct("do {model}")).toBe("In this repository: do {model}");
  expect(adapter.tools("chat").run?.("echo {path}")).toEqual({
    name: "sh",
    arguments: { script: "echo {path}", seconds: 5 },
  });
  expect(adapter.tools("chat").write).toBeUndefined();
});

test("exit codes mean what the configuration says; others are a crash with the last words", () => {
  const { ending } = commandAdapter(agent);
  expect(ending({ exitCode: 0, stdout: "", stderr: "" })).toEqual({ kind: "completed", reason: "" });
  expect(ending({ exitCode: 3, stdout: "", stderr: "no model" })).toEqual({
    kind: "proxy-failure",
    reason: "exit code 3: no model",
  });
  expect(ending({ exitCode: undefined, stdout: "", stderr: "" })).toEqual({
    kind: "agent-crash",
    reason: "killed",
  });
});

test.each([
  ["an empty command", { name: "x", argv: [] }, "argv"],
  ["an unknown key", { name: "x", argv: ["a"], shell: true }, "shell"],
  ["a name with a slash", { name: "a/b", argv: ["a"] }, "name"],
])("%s is refused by name", (_, given, field) => {
  const { error } = CommandHarness.safeParse(given);
  expect(JSON.stringify(error?.issues)).toContain(field);
});
