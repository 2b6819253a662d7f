/** Owns how pi is obtained and launched, over each of the three model APIs it speaks. */
import { join } from "node:path";
import {
  baseEnvironment,
  endingByExitCode,
  type HarnessAdapter,
  type LaunchTarget,
  lacks,
  type WireApi,
} from "@mortise/harness";

const VERSION = "0.73.1";
const PROGRAM = "node_modules/@mariozechner/pi-coding-agent/dist/cli.js";
const APIS: Readonly<Record<WireApi, string>> = {
  chat: "openai-completions",
  responses: "openai-responses",
  messages: "anthropic-messages",
};
const KEY_VARIABLE = "MORTISE_SESSION_KEY";
/** Tokens it leaves free for a reply, and recent ones it keeps as they are; its defaults suit windows of 200 000. */
const RESERVE_TOKENS = 4_096;
const KEEP_RECENT_TOKENS = 4_096;

export const pi: HarnessAdapter = {
  name: "pi",
  version: VERSION,
  licence: "open",
  runtime: { kind: "npm", packages: { "@mariozechner/pi-coding-agent": VERSION }, probe: PROGRAM },
  needs: { interpreter: "node", binaries: [], programs: ["bash"] },
  programs: [],
  wireApis: ["chat", "responses", "messages"],
  instruct: (instruction) => instruction,
  launch: (target) => ({
    argv: [
      target.node,
      join(target.runtime, PROGRAM),
      "-p",
      "--mode",
      "json",
      "--provider",
      "mortise",
      "--model",
      target.model,
      target.instruction,
    ],
    environment: {
      ...baseEnvironment(target),
      [KEY_VARIABLE]: target.key,
      PI_OFFLINE: "1",
      PI_SKIP_VERSION_CHECK: "1",
    },
    files: [
      {
        path: join(target.home, ".pi/agent/models.json"),
        content: JSON.stringify(models(target), null, 2),
      },
      {
        path: join(target.home, ".pi/agent/settings.json"),
        content: JSON.stringify(SETTINGS, null, 2),
      },
    ],
  }),
  ending: endingByExitCode,
  transcript: [".pi/agent/sessions/**/*.jsonl"],
  tools: () => ({
    run: (command) => ({ name: "bash", arguments: { command } }),
    write: (path, text) => ({ name: "write", arguments: { path, content: text } }),
  }),
  behaviour: {
    streams: true,
    parallelCalls: true,
    subAgent: lacks("four tools, none of which starts an agent"),
    // A task is one run of its agent; it looks at its window when the run has ended.
    compaction: { window: (firstPromptTokens) => firstPromptTokens + 16_000, when: "behind" },
    overflow: "compacts",
    truncatedText: "ends",
    truncatedCall: "continues",
    cut: "retries",
    overload: "retries",
  },
};

const SETTINGS = {
  compaction: { enabled: true, reserveTokens: RESERVE_TOKENS, keepRecentTokens: KEEP_RECENT_TOKENS },
};

function models(target: LaunchTarget): object {
  const path = target.wireApi === "messages" ? "" : "/v1";
  return {
    providers: {
      mortise: {
        baseUrl: `${target.modelUrl}${path}`,
        api: APIS[target.wireApi],
        apiKey: KEY_VARIABLE,
        models: [
          {
            id: target.model,
            reasoning: false,
            input: ["text"],
            contextWindow: target.contextTokens,
            maxTokens: target.maxOutputTokens,
          },
        ],
      },
    },
  };
}
