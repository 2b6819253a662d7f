/**
 * Owns how Claude Code is obtained and launched. Proprietary: its runtime goes from npm into the operator's own
 * cache and nowhere else.
 */
import { join } from "node:path";
import { baseEnvironment, endingByExitCode, type HarnessAdapter } from "@mortise/harness";

const VERSION = "2.1.332";
/** The package holds a native binary a platform. */
const BINARY = `node_modules/@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`;

export const claudeCode: HarnessAdapter = {
  name: "claude-code",
  version: VERSION,
  licence: "proprietary",
  runtime: { kind: "npm", packages: { "@anthropic-ai/claude-code": VERSION }, probe: BINARY },
  needs: { interpreter: "none", binaries: [BINARY], programs: ["bash"] },
  programs: [],
  wireApis: ["messages"],
  instruct: (instruction) => instruction,
  launch: (target) => ({
    argv: [
      join(target.runtime, BINARY),
      "-p",
      target.instruction,
      "--output-format",
      "json",
      "--dangerously-skip-permissions",
      "--model",
      target.model,
    ],
    environment: {
      ...baseEnvironment(target),
      ANTHROPIC_BASE_URL: target.modelUrl,
      ANTHROPIC_AUTH_TOKEN: target.key,
      // A sub-agent that asks for the small model gets the same policy.
      ANTHROPIC_DEFAULT_HAIKU_MODEL: target.model,
      ANTHROPIC_DEFAULT_SONNET_MODEL: target.model,
      ANTHROPIC_DEFAULT_OPUS_MODEL: target.model,
      // Permissions are the sandbox's; it refuses to skip its own as root otherwise.
      IS_SANDBOX: "1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      // What makes prompts differ from request to request without meaning anything.
      CLAUDE_CODE_ATTRIBUTION_HEADER: "0",
      CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS: "1",
      ENABLE_TOOL_SEARCH: "false",
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(target.contextTokens),
      CLAUDE_CODE_AUTO_COMPACT_WINDOW: String(target.contextTokens),
      CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(target.maxOutputTokens),
    },
    files: [],
  }),
  ending: endingByExitCode,
  transcript: [".claude/projects/**/*.jsonl"],
  tools: () => ({
    run: (command) => ({ name: "Bash", arguments: { command, description: "one step" } }),
    write: (path, text) => ({ name: "Write", arguments: { file_path: path, content: text } }),
    delegate: (prompt) => ({
      name: "Agent",
      arguments: {
        description: "a side task",
        prompt,
        subagent_type: "general-purpose",
        run_in_background: false,
      },
    }),
  }),
  behaviour: {
    streams: true,
    parallelCalls: true,
    subAgent: "own-thread",
    compaction: { window: (firstPromptTokens) => firstPromptTokens + 40_000, when: "within" },
    overflow: "compacts",
    truncatedText: "continues",
    truncatedCall: "continues",
    cut: "adopts",
    overload: "retries",
  },
};
