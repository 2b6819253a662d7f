/** Owns how OpenCode is obtained and launched, over each of the three model APIs it has a provider for. */
import { join } from "node:path";
import {
  baseEnvironment,
  endingByExitCode,
  type HarnessAdapter,
  type LaunchTarget,
  type WireApi,
} from "@mortise/harness";

const VERSION = "1.18.33";
const PLATFORM = `${process.platform}-${process.arch}`;
const BINARY = `node_modules/opencode-${PLATFORM}/bin/opencode`;
/** It would fetch this program when a search tool is first used; in a sandbox there is nothing to fetch from. */
const SEARCH = { package: `@vscode/ripgrep-${PLATFORM}`, version: "1.18.0" } as const;

/** Providers that are part of the binary: nothing is installed when it runs. */
const PROVIDERS: Readonly<Record<WireApi, string>> = {
  chat: "@ai-sdk/openai-compatible",
  responses: "@ai-sdk/openai",
  messages: "@ai-sdk/anthropic",
};
const KEY_VARIABLE = "MORTISE_SESSION_KEY";

export const opencode: HarnessAdapter = {
  name: "opencode",
  version: VERSION,
  licence: "open",
  runtime: {
    kind: "npm",
    packages: { "opencode-ai": VERSION, [SEARCH.package]: SEARCH.version },
    probe: BINARY,
  },
  needs: { interpreter: "none", binaries: [BINARY], programs: ["bash"] },
  programs: [],
  wireApis: ["chat", "responses", "messages"],
  instruct: (instruction) => instruction,
  launch: (target) => ({
    argv: [
      join(target.runtime, BINARY),
      "run",
      "--format",
      "json",
      "--model",
      `mortise/${target.model}`,
      target.instruction,
    ],
    environment: {
      ...baseEnvironment(target, join(target.runtime, "node_modules", SEARCH.package, "bin")),
      [KEY_VARIABLE]: target.key,
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
    },
    files: [
      {
        path: join(target.home, ".config/opencode/opencode.json"),
        content: JSON.stringify(settings(target), null, 2),
      },
    ],
  }),
  ending: endingByExitCode,
  transcript: [".local/share/opencode/storage/**/*.json", ".local/share/opencode/*.db"],
  tools: () => ({
    run: (command) => ({ name: "bash", arguments: { command, description: "one step" } }),
    write: (path, text) => ({ name: "write", arguments: { content: text, filePath: path } }),
    delegate: (prompt) => ({
      name: "task",
      arguments: { description: "a side task", prompt, subagent_type: "general" },
    }),
  }),
  behaviour: {
    streams: true,
    parallelCalls: true,
    subAgent: "own-thread",
    compaction: { window: (firstPromptTokens) => firstPromptTokens + 20_000, when: "within" },
    overflow: "compacts",
    truncatedText: "ends",
    truncatedCall: "continues",
    cut: "retries",
    keepsBrokenText: ["chat", "responses"],
    overload: "retries",
  },
};

/** The small model has a name of its own, so that title calls can be told from the agent's. */
function settings(target: LaunchTarget): object {
  const small = `${target.model}-small`;
  const limit = { context: target.contextTokens, output: target.maxOutputTokens };
  return {
    $schema: "https://opencode.ai/config.json",
    model: `mortise/${target.model}`,
    small_model: `mortise/${small}`,
    autoupdate: false,
    share: "disabled",
    permission: { "*": "allow" },
    provider: {
      mortise: {
        npm: PROVIDERS[target.wireApi],
        name: "Mortise",
        options: { baseURL: `${target.modelUrl}/v1`, apiKey: `{env:${KEY_VARIABLE}}` },
        models: {
          [target.model]: { name: target.model, tool_call: true, limit },
          [small]: { name: small, tool_call: false, limit },
        },
      },
    },
  };
}
