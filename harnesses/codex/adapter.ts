/** Owns how Codex is obtained and launched. It speaks the Responses API only. */
import { join } from "node:path";
import { baseEnvironment, endingByExitCode, type HarnessAdapter, type LaunchTarget } from "@mortise/harness";

const VERSION = "0.171.0";
const TRIPLES: Readonly<Record<string, string>> = {
  "linux-x64": "x86_64-unknown-linux-musl",
  "linux-arm64": "aarch64-unknown-linux-musl",
  "darwin-x64": "x86_64-apple-darwin",
  "darwin-arm64": "aarch64-apple-darwin",
};
const PLATFORM = `${process.platform}-${process.arch}`;
const VENDOR = `node_modules/@openai/codex-${PLATFORM}/vendor/${TRIPLES[PLATFORM] ?? "unsupported-platform"}`;
const BINARY = `${VENDOR}/bin/codex`;
const KEY_VARIABLE = "MORTISE_SESSION_KEY";
/** Its sub-agent tools are a namespace on the wire, and one flat name each to the policy. */
const AGENT_TOOLS = "multi_agent_v1";
const WAIT_FOR_AGENT_MS = 120_000;
/** It compacts when a turn's total usage passes this share of its window. */
const COMPACT_AT_SHARE = 0.9;

export const codex: HarnessAdapter = {
  name: "codex",
  version: VERSION,
  licence: "open",
  runtime: { kind: "npm", packages: { "@openai/codex": VERSION }, probe: BINARY },
  needs: { interpreter: "none", binaries: [BINARY], programs: [] },
  programs: [],
  wireApis: ["responses"],
  instruct: (instruction) => instruction,
  launch: (target) => ({
    argv: [
      join(target.runtime, BINARY),
      "exec",
      "--json",
      "--skip-git-repo-check",
      "--dangerously-bypass-approvals-and-sandbox",
      target.instruction,
    ],
    environment: {
      ...baseEnvironment(target, join(target.runtime, VENDOR, "codex-path")),
      [KEY_VARIABLE]: target.key,
    },
    files: [{ path: join(target.home, ".codex/config.toml"), content: settings(target) }],
  }),
  ending: endingByExitCode,
  transcript: [".codex/sessions/**/*.jsonl"],
  tools: () => ({
    run: (command) => ({ name: "exec_command", arguments: { cmd: command } }),
    delegate: (prompt) => ({ name: `${AGENT_TOOLS}__spawn_agent`, arguments: { message: prompt } }),
    awaitDelegate(result) {
      const [, agent] = /"agent_id":"([^"]+)"/.exec(result) ?? [];
      if (agent === undefined) return undefined;
      const wait = { targets: [agent], timeout_ms: WAIT_FOR_AGENT_MS };
      return { name: `${AGENT_TOOLS}__wait_agent`, arguments: wait };
    },
  }),
  behaviour: {
    streams: true,
    parallelCalls: true,
    subAgent: "own-thread",
    compaction: { window: (firstPromptTokens) => firstPromptTokens + 20_000, when: "within" },
    overflow: "ends",
    truncatedText: "ends",
    // A call cut off in its arguments is shown as one: it fails, and the agent goes on.
    truncatedCall: "continues",
    cut: "adopts",
    overload: "retries",
  },
};

function settings(target: LaunchTarget): string {
  const quoted = (text: string) => JSON.stringify(text);
  return [
    `model = ${quoted(target.model)}`,
    'model_provider = "mortise"',
    `model_context_window = ${target.contextTokens}`,
    `model_auto_compact_token_limit = ${Math.floor(target.contextTokens * COMPACT_AT_SHARE)}`,
    "check_for_update_on_startup = false",
    "",
    "[model_providers.mortise]",
    'name = "Mortise"',
    `base_url = ${quoted(`${target.modelUrl}/v1`)}`,
    `env_key = ${quoted(KEY_VARIABLE)}`,
    'wire_api = "responses"',
    "",
    "[analytics]",
    "enabled = false",
    "",
    `[projects.${quoted(target.workspace)}]`,
    'trust_level = "trusted"',
    "",
  ].join("\n");
}
