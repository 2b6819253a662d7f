/** What every adapter promises: pinned, pointed at one model API, with the session's key in no file and no argument. */

import { type HarnessAdapter, type LaunchTarget, STANDARD_PATH, type WireApi } from "@mortise/harness";
import { HARNESSES, harnessNamed } from "@mortise/harnesses";
import { parse } from "smol-toml";
import { describe, expect, test } from "vitest";

const KEY = "key-of-the-session";

function targetOf(wireApi: WireApi): LaunchTarget {
  return {
    runtime: "/opt/runtime",
    home: "/agent/home",
    workspace: "/agent/workspace",
    modelUrl: "http://127.0.0.1:8080",
    key: KEY,
    model: "policy",
    wireApi,
    instruction: 'Repair "sum"\nin src/a.js',
    contextTokens: 65_536,
    maxOutputTokens: 4_096,
    node: "/opt/node",
    python: "/opt/python3",
    path: STANDARD_PATH,
  };
}

const launches = HARNESSES.flatMap((adapter) =>
  adapter.wireApis.map((wireApi) => ({
    name: `${adapter.name} over ${wireApi}`,
    adapter,
    launch: adapter.launch(targetOf(wireApi)),
  })),
);

describe.each(launches)("$name", ({ adapter, launch }) => {
  test("has the key in its environment, once, and nowhere else", () => {
    expect(Object.values(launch.environment).filter((value) => value === KEY)).toHaveLength(1);
    expect(JSON.stringify([launch.argv, launch.files])).not.toContain(KEY);
  });

  test("is told where the model is, and no other address", () => {
    const said = JSON.stringify([launch.environment, launch.files, launch.argv]);
    const hosts = [...said.matchAll(/https?:\/\/([^/"\\]+)/g)].map((match) => match[1]);
    expect(new Set(hosts.filter((host) => host !== "opencode.ai"))).toEqual(new Set(["127.0.0.1:8080"]));
  });

  test("inherits nothing: home, search path and locale are its own", () => {
    expect(launch.environment).toMatchObject({ HOME: "/agent/home", LANG: "C.UTF-8" });
    expect(launch.environment.PATH).toMatch(/(^|:)\/usr\/bin(:|$)/);
    for (const name of ["USER", "NODE_OPTIONS", "npm_config_cache"])
      expect(launch.environment).not.toHaveProperty(name);
  });

  test("writes below its home only, and gets the instruction whole", () => {
    for (const { path } of launch.files) expect(path).toMatch(/^\/agent\/home\//);
    const given = [...launch.argv, ...Object.values(launch.environment)];
    expect(given).toContain('Repair "sum"\nin src/a.js');
  });

  test("runs what was obtained", () => {
    expect(launch.argv.some((word) => word.startsWith("/opt/runtime/")) || launch.argv[1] === "-m").toBe(
      true,
    );
    if (adapter.runtime.kind !== "npm" && adapter.runtime.kind !== "pypi") return;
    for (const version of Object.values(adapter.runtime.packages)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  });
});

function configuration(adapter: HarnessAdapter, wireApi: WireApi, name: string): string {
  return adapter.launch(targetOf(wireApi)).files.find(({ path }) => path.endsWith(name))!.content;
}

test("Claude Code's base URL has no version, and its nonces are off", () => {
  const { environment } = harnessNamed("claude-code").launch(targetOf("messages"));
  expect(environment).toMatchObject({
    ANTHROPIC_BASE_URL: "http://127.0.0.1:8080",
    CLAUDE_CODE_ATTRIBUTION_HEADER: "0",
    CLAUDE_CODE_MAX_CONTEXT_TOKENS: "65536",
  });
});

test("Codex's configuration is TOML with limits, so that it compacts before it is refused", () => {
  const settings = parse(configuration(harnessNamed("codex"), "responses", "config.toml"));
  expect(settings).toMatchObject({
    model_context_window: 65_536,
    model_auto_compact_token_limit: 58_982,
    model_providers: { mortise: { base_url: "http://127.0.0.1:8080/v1", wire_api: "responses" } },
  });
});

test.each([
  ["chat", "@ai-sdk/openai-compatible"],
  ["responses", "@ai-sdk/openai"],
  ["messages", "@ai-sdk/anthropic"],
] as const)("OpenCode speaks %s by its bundled provider", (wireApi, npm) => {
  const settings = JSON.parse(configuration(harnessNamed("opencode"), wireApi, "opencode.json"));
  expect(settings.provider.mortise).toMatchObject({
    npm,
    options: { baseURL: "http://127.0.0.1:8080/v1", apiKey: "{env:MORTISE_SESSION_KEY}" },
  });
  expect(settings.small_model).not.toBe(settings.model);
});

test.each([
  ["chat", "openai-completions", "http://127.0.0.1:8080/v1"],
  ["responses", "openai-responses", "http://127.0.0.1:8080/v1"],
  ["messages", "anthropic-messages", "http://127.0.0.1:8080"],
] as const)("pi speaks %s at the address that API's client expects", (wireApi, api, baseUrl) => {
  const { providers } = JSON.parse(configuration(harnessNamed("pi"), wireApi, "models.json"));
  expect(providers.mortise).toMatchObject({ api, baseUrl });
});

test("a harness without an adapter is refused with the ones there are", () => {
  expect(() => harnessNamed("claude")).toThrow(
    expect.objectContaining({ code: "MORTISE_HARNESS_UNKNOWN", fix: expect.stringContaining("claude-code") }),
  );
});
