/** Owns how the bundled harness is told about its model as a configured command: as any OpenAI client is. */
import { join } from "node:path";
import type { HarnessSettings } from "@mortise/contracts";

/** Runs with every backend: it is one file, and its interpreter is the host image's `node`. */
export function miniHarness(root: string): HarnessSettings {
  return {
    directory: join(root, "harnesses", "mini"),
    argv: ["node", "/opt/harness/mini.cjs"],
    environment: {
      OPENAI_BASE_URL: "{model_url}",
      OPENAI_API_KEY: "{token}",
      OPENAI_MODEL: "{model}",
      MINI_INSTRUCTION: "{instruction}",
      MINI_WORKDIR: "{workspace}",
      // Nobody watches these replies grow; whole ones cost less CPU per trial.
      MINI_STREAM: "0",
    },
    // From the README of the harness; what is not listed is a crash of the agent.
    exitCodes: { "3": "proxy-failure", "6": "turn-limit" },
  };
}
