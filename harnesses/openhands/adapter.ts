/**
 * Owns how the OpenHands SDK is obtained and launched. It is a library: run.py beside this file runs its default
 * agent with it, streaming, until the agent calls its finish tool.
 */
import { join } from "node:path";
import {
  baseEnvironment,
  endingByExitCode,
  type HarnessAdapter,
  lacks,
  PYTHON_PACKAGES,
  pythonFile,
} from "@mortise/harness";

const VERSION = "1.58.2";

export const openhands: HarnessAdapter = {
  name: "openhands",
  version: VERSION,
  licence: "open",
  runtime: {
    kind: "pypi",
    packages: { "openhands-sdk": VERSION, "openhands-tools": VERSION },
    python: [3, 12],
    probe: `${PYTHON_PACKAGES}/openhands/tools/preset/default.py`,
  },
  needs: { interpreter: "python", binaries: [], programs: ["bash"] },
  programs: ["run.py"],
  wireApis: ["chat"],
  instruct: (instruction) => instruction,
  launch: (target) => ({
    argv: pythonFile(target, "run.py"),
    environment: {
      ...baseEnvironment(target),
      // The prefix makes the client inside speak plain Chat Completions to the base URL.
      LLM_MODEL: `openai/${target.model}`,
      LLM_BASE_URL: `${target.modelUrl}/v1`,
      LLM_API_KEY: target.key,
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
      ALLOW_SHORT_CONTEXT_WINDOWS: "true",
      OPENHANDS_SUPPRESS_BANNER: "1",
      OPENHANDS_CONTEXT_TOKENS: String(target.contextTokens),
      OPENHANDS_OUTPUT_TOKENS: String(target.maxOutputTokens),
      OPENHANDS_TASK: target.instruction,
      OPENHANDS_WORKSPACE: target.workspace,
      OPENHANDS_STATE: join(target.home, "conversations"),
    },
    files: [],
  }),
  ending: endingByExitCode,
  transcript: ["conversations/**/*.json"],
  tools: () => ({
    run: (command) => ({ name: "terminal", arguments: { command } }),
    write: (path, text) => ({
      name: "file_editor",
      arguments: { command: "create", path, file_text: text },
    }),
    finish: (message) => ({ name: "finish", arguments: { message } }),
  }),
  behaviour: {
    streams: true,
    parallelCalls: true,
    subAgent: lacks("its three default tools start no agent"),
    // Its condenser counts with a tokenizer of its own, whose tokens are several times longer than a script's.
    compaction: { window: (firstPromptTokens) => Math.round(firstPromptTokens * 0.8), when: "within" },
    overflow: "compacts",
    truncatedText: "ends",
    truncatedCall: "continues",
    cut: "retries",
    overload: "retries",
  },
};
