/** Owns how the bundled mini harness is launched. The harness itself knows nothing of Mortise. */
import { join } from "node:path";
import { baseEnvironment, type EndKind, type HarnessAdapter, lacks, lastLine } from "@mortise/harness";

/** Exit codes as mini's README lists them. */
const ENDS: Readonly<Record<number, EndKind>> = { 0: "completed", 3: "proxy-failure", 6: "turn-limit" };

export const mini: HarnessAdapter = {
  name: "mini",
  version: "0.1.0",
  licence: "open",
  runtime: { kind: "bundled", probe: "mini.cjs" },
  needs: { interpreter: "node", binaries: [], programs: [] },
  programs: [],
  wireApis: ["chat"],
  instruct: (instruction) => instruction,
  launch: (target) => ({
    argv: [target.node, join(target.runtime, "mini.cjs")],
    environment: {
      ...baseEnvironment(target),
      OPENAI_BASE_URL: `${target.modelUrl}/v1`,
      OPENAI_API_KEY: target.key,
      OPENAI_MODEL: target.model,
      MINI_INSTRUCTION: target.instruction,
      MINI_WORKDIR: target.workspace,
      MINI_MAX_TURNS: "12",
    },
    files: [],
  }),
  ending({ exitCode, stderr }) {
    const kind = ENDS[exitCode ?? -1] ?? "agent-crash";
    return { kind, reason: kind === "completed" ? "" : lastLine(stderr) };
  },
  transcript: [],
  tools: () => ({
    replace: (before, after) => ({ name: "edit", arguments: { old: before, new: after } }),
  }),
  behaviour: {
    streams: true,
    parallelCalls: true,
    subAgent: lacks("one agent only"),
    compaction: lacks("keeps its whole history"),
    overflow: "ends",
    truncatedText: "ends",
    truncatedCall: "ends",
    cut: "retries",
    overload: "retries",
  },
};
