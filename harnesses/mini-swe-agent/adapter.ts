/** Owns how mini-swe-agent is obtained and launched. It asks for whole replies; it has no streaming to turn on. */
import { join } from "node:path";
import {
  baseEnvironment,
  endingByExitCode,
  type HarnessAdapter,
  lacks,
  PYTHON_PACKAGES,
  pythonModule,
} from "@mortise/harness";

const VERSION = "2.4.6";
/** The command whose output ends a run; its own convention. */
const SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";
const TRANSCRIPT = "trajectory/run.json";

export const miniSweAgent: HarnessAdapter = {
  name: "mini-swe-agent",
  version: VERSION,
  licence: "open",
  runtime: {
    kind: "pypi",
    packages: { "mini-swe-agent": VERSION },
    python: [3, 10],
    probe: `${PYTHON_PACKAGES}/minisweagent/run/mini.py`,
  },
  needs: { interpreter: "python", binaries: [], programs: [] },
  programs: [],
  wireApis: ["chat"],
  instruct: (instruction) => instruction,
  launch: (target) => ({
    argv: [
      ...pythonModule(target, "minisweagent.run.mini"),
      "--yolo",
      "--exit-immediately",
      "--cost-limit",
      "0",
      "--config",
      "mini.yaml",
      "--config",
      `model.model_kwargs.max_tokens=${target.maxOutputTokens}`,
      "--output",
      join(target.home, TRANSCRIPT),
      "--model",
      `openai/${target.model}`,
      "--task",
      target.instruction,
    ],
    environment: {
      ...baseEnvironment(target),
      OPENAI_API_BASE: `${target.modelUrl}/v1`,
      OPENAI_API_KEY: target.key,
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
      MSWEA_CONFIGURED: "true",
      MSWEA_COST_TRACKING: "ignore_errors",
      MSWEA_SILENT_STARTUP: "1",
      MSWEA_GLOBAL_CONFIG_DIR: join(target.home, ".config/mini-swe-agent"),
    },
    files: [],
  }),
  ending: endingByExitCode,
  transcript: [TRANSCRIPT],
  tools: () => ({
    run: (command) => ({ name: "bash", arguments: { command } }),
    finish: () => ({ name: "bash", arguments: { command: SUBMIT } }),
  }),
  behaviour: {
    streams: false,
    parallelCalls: true,
    subAgent: lacks("one agent only"),
    compaction: lacks("keeps its whole history"),
    overflow: "ends",
    truncatedText: "continues",
    truncatedCall: "continues",
    cut: "retries",
    overload: "retries",
  },
};
