/**
 * Owns what a user of a site brings, small: a directory with two Harbor tasks of their own, a program as the harness,
 * a checkpoint, and a script by which the policy solves every other trial. Starts nothing.
 */
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { stringify } from "smol-toml";
import { END_OF_TURN, replyText, writePolicy } from "../../src/conformance/policy-files.js";

const AGENT = join(import.meta.dirname, "../../../../test/harness-in-sandbox/agent/agent.cjs");
/** Of the policy: far more than the agent's prompts take. */
const WINDOW_TOKENS = 16_384;
const REPLIES_PER_TASK = 64;
const STUCK_MS = 3_600_000;

interface OwnTask {
  /** Stands in the instruction, so a script knows whose turn it is. */
  readonly word: string;
  readonly instruction: string;
  readonly file: string;
  readonly broken: string;
  readonly check: string;
  /** For a shell in the work tree. */
  readonly repair: string;
}

const TASKS: Readonly<Record<string, OwnTask>> = {
  "slugify-spaces": {
    word: "slugify",
    instruction:
      "`slugify` in slug.js leaves a dash for every space of a title. Make it one for several in a row.",
    file: "slug.js",
    broken: 'exports.slugify = (title) => title.toLowerCase().replace(/ /g, "-");\n',
    check: 'require(path + "/slug.js").slugify("One  Two   three") === "one-two-three"',
    repair: "sed -i 's# /g# +/g#' slug.js",
  },
  "median-even": {
    word: "median",
    instruction:
      "`median` in stats.js is wrong for an even number of values: take the mean of the middle two.",
    file: "stats.js",
    broken: [
      "exports.median = (values) => {",
      "  const sorted = [...values].sort((a, b) => a - b);",
      "  return sorted[Math.floor(sorted.length / 2)];",
      "};\n",
    ].join("\n"),
    check: 'require(path + "/stats.js").median([1, 2, 3, 4]) === 2.5',
    repair:
      "sed -i 's#return .*#const m = sorted.length / 2; return (sorted[Math.ceil(m) - 1] + sorted[Math.floor(m)]) / 2;#' stats.js",
  },
};

/** A Harbor verifier's reward file has a place only where a sandbox has a root of its own. */
type Grading = "reward" | "results";

export interface OwnProject {
  readonly tasks: string;
  readonly harness: string;
  readonly checkpoint: string;
  readonly script: string;
}

export async function writeOwnProject(directory: string, grading: Grading): Promise<OwnProject> {
  const tasks = join(directory, "tasks");
  for (const [id, task] of Object.entries(TASKS)) writeTask(join(tasks, id), task, grading);
  const program = join(directory, HARNESS.directory);
  mkdirSync(program, { recursive: true });
  copyFileSync(AGENT, join(program, "agent.cjs"));
  writeFileSync(join(program, "settings.json"), JSON.stringify({ model: "policy", maxTurns: 4 }));
  const harness = join(directory, "my-agent.toml");
  writeFileSync(harness, stringify(HARNESS));
  const { checkpoint } = await writePolicy(directory, WINDOW_TOKENS);
  const script = join(directory, "script.jsonl");
  writeFileSync(script, scriptText());
  return { tasks, harness, checkpoint, script };
}

const HARNESS = {
  directory: "program",
  argv: ["node", "{runtime}/agent.cjs"],
  version: "1.0.0",
  environment: {
    AGENT_URL: "{model_url}",
    AGENT_KEY: "{token}",
    AGENT_TASK: "{instruction}",
    AGENT_SETTINGS: "{runtime}/settings.json",
    AGENT_LOG: "{home}/messages.json",
  },
  exitCodes: { "9": "turn-limit" },
};

/** Every second trial of a task repairs it, the others run a command that changes nothing. */
function scriptText(first: readonly object[] = []): string {
  const after = { text: `Done.${END_OF_TURN}`, when: { contains: "exit code" }, times: "always" };
  const repairs = Object.values(TASKS).flatMap(({ word, repair }) =>
    Array.from({ length: REPLIES_PER_TASK }, (_, at) => ({
      text: commandReply(at % 2 === 0 ? repair : "true"),
      when: { contains: word },
    })),
  );
  const lines = [{ format: "mortise.engine-script", schema: 1 }, after, ...first, ...repairs];
  return `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
}

/** A script whose second trial waits for its first reply for longer than anything here takes. */
export function stuckScriptText(): string {
  const text = commandReply("true");
  return scriptText([{ text }, { text, firstTokenMs: STUCK_MS }]);
}

function commandReply(script: string): string {
  return `${replyText("A command.", [{ name: "sh", arguments: { script } }])}${END_OF_TURN}`;
}

function writeTask(directory: string, task: OwnTask, grading: Grading): void {
  const put = (path: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text, { mode });
  };
  put(
    "task.toml",
    stringify({
      schema_version: "1.4",
      agent: { timeout_sec: 120 },
      verifier: { timeout_sec: 60 },
      environment: { allow_internet: false, memory_mb: 512 },
    }),
  );
  put("instruction.md", `${task.instruction}\n`);
  put("environment/Dockerfile", "FROM scratch\n");
  put(`environment/repository/${task.file}`, task.broken);
  if (grading === "reward") {
    put("tests/test.sh", REWARD_SCRIPT, 0o755);
    put("tests/check.cjs", `const path = process.cwd();\nprocess.exit(${task.check} ? 0 : 1);\n`);
  } else {
    put("tests/test.sh", '#!/bin/sh\nexec node "$(dirname "$0")/check.cjs"\n', 0o755);
    put("tests/check.cjs", RESULTS_CHECK.replace("CHECK", task.check));
    const expected = { schema: 1, format: "json-lines", failToPass: ["works"], passToPass: [] };
    put("tests/expected.json", JSON.stringify(expected));
  }
}

const REWARD_SCRIPT = `#!/bin/sh
cd /workspace
if node /tests/check.cjs; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
`;

const RESULTS_CHECK = `const [nonce] = require("node:fs").readFileSync(0, "utf8").split("\\n");
const path = process.cwd();
const say = (line) => console.log(JSON.stringify({ nonce, ...line }));
say({ name: "works", status: (CHECK) ? "passed" : "failed", ms: 1 });
say({ end: true, tests: 1 });
`;
