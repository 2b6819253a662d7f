/**
 * Owns the plan of verifications whose tests print the log of a test runner: what prepares, what tests, the runner's
 * channel, and the same again with altered tests. Does not judge (log.ts).
 */
import { randomBytes, randomInt } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type GradingRecord, readRecord } from "@mortise/grading";
import { filesBelow, type Task } from "@mortise/tasks";
import { alterTests } from "../counter/alter.js";
import { ORIGINALS, originalsOf, originalsStep } from "../counter/originals.js";
import { asFilter } from "../results/results.js";
import { type CounterPlan, newNonce, type Plan, type PlanWish, type Step } from "../run/plan.js";
import { type RunRecord, stepNamed } from "../run/run-record.js";
import {
  type EvalScript,
  prepareCommand,
  STATE_DIRECTORY,
  splitEvalScript,
  testsCommand,
} from "./eval-script.js";
import { type Mount, type Runner, runnerOf } from "./runner.js";
import { RUNNERS } from "./runners/index.js";

export const PREPARE = "prepare";
/** The step, and the diff of the tests. */
export const TESTS = "tests";
const TESTS_TARGET = "/tests";
const DIFF_FILE = "test.patch";
/** Say what the answers are. */
const WITHHELD = new Set(["config.json", "expected.json"]);
/** With its input on a socket bash takes itself for a remote shell and reads a start-up file, unless told not to. */
const BASH = ["bash", "--norc", "--noprofile", "-c"];

export type LogTask = Task & {
  readonly tests: { readonly expected: { readonly format: "log"; readonly parser: string } };
};

/** What both runs have in common. */
interface Parts {
  /** Of the tests, on this host. */
  readonly directory: string;
  readonly record: GradingRecord;
  readonly script: EvalScript;
  /** Where the script lies, inside. */
  readonly place: string;
  readonly runner: Runner | undefined;
  readonly timeoutMs: number;
  readonly filter: NonNullable<Plan["request"]["filter"]>;
  /** Of the tests. */
  readonly diff: string | undefined;
}

export function planLog(task: Task, { ref, hasChange, timeoutMs }: PlanWish): Plan {
  const parts = partsOf(task as LogTask, timeoutMs);
  const { runner, diff } = parts;
  const nonce = newNonce();
  const { steps, request } = runOf(parts, nonce, diff);
  const originals = mayAlter(parts) ? originalsStep(parts.diff) : undefined;
  return {
    facts: {
      task: { id: ref.id, digest: ref.digest },
      kind: "log",
      nonce,
      hasChannel: runner !== undefined,
      ...(runner === undefined ? {} : { runner: runner.name }),
      hasChange,
    },
    steps: originals === undefined ? steps : [originals, ...steps],
    request,
  };
}

/** The same again with altered tests; undefined where none can be altered. `run` is what the first one showed. */
export function planLogCounter(
  task: Task,
  { timeoutMs }: Pick<PlanWish, "timeoutMs">,
  run: Pick<RunRecord, "steps">,
): CounterPlan | undefined {
  const parts = partsOf(task as LogTask, timeoutMs);
  if (!mayAlter(parts)) return undefined;
  const { record, diff } = parts;
  const expected = [...record.failToPass, ...record.passToPass];
  const originals = originalsOf(stepNamed(run, ORIGINALS));
  const altered = alterTests(diff, expected, (below) => randomInt(below), originals);
  if (altered === undefined) return undefined;
  const nonce = newNonce();
  return { nonce, tests: altered.tests, ...runOf(parts, nonce, altered.diff) };
}

/** Something has to put the diff in its place, and results have to have names. */
function mayAlter(parts: Parts): parts is Parts & { readonly diff: string } {
  return parts.diff !== undefined && parts.script.prepare !== undefined && !parts.record.printsFailuresOnly;
}

function partsOf(task: LogTask, timeoutMs: number): Parts {
  const file = join(task.tests.directory, "eval.sh");
  const isEvalScript = existsSync(file);
  const script = splitEvalScript(readFileSync(isEvalScript ? file : task.tests.script, "utf8"));
  const record = recordOf(task);
  const diffFile = join(task.tests.directory, DIFF_FILE);
  return {
    directory: task.tests.directory,
    record,
    script,
    place: isEvalScript ? "/tests/eval.sh" : "/tests/test.sh",
    runner: runnerOf(RUNNERS, script.tests, record.parser.name),
    timeoutMs,
    filter: asFilter(task),
    diff: existsSync(diffFile) ? readFileSync(diffFile, "utf8") : undefined,
  };
}

function runOf(
  { script, place, runner, timeoutMs, filter, directory }: Parts,
  nonce: string,
  diff: string | undefined,
): Pick<Plan, "steps" | "request"> {
  const diffs = diff === undefined ? [] : [{ name: TESTS, diff: new TextEncoder().encode(diff) }];
  const tests: Step = {
    name: TESTS,
    argv: [...BASH, testsCommand(script, runner?.exports), place],
    timeoutMs,
    ...(script.prepare === undefined ? {} : { putTextPatches: diffs.map(({ name }) => name) }),
    ...(runner === undefined
      ? {}
      : { stdin: new TextEncoder().encode(`${JSON.stringify(wishOf(nonce))}\n`) }),
  };
  const mounts = [testsMount(directory, diff), ...(runner === undefined ? [] : [runner.mount])];
  const request = { filter, textPatches: diffs, withTests: false, mounts };
  if (script.prepare === undefined) return { steps: [tests], request };
  const prepare: Step = {
    name: PREPARE,
    argv: [...BASH, prepareCommand(script.prepare), place],
    timeoutMs,
    put: [{ directory: STATE_DIRECTORY }],
    required: true,
  };
  return { steps: [prepare, tests], request };
}

/**
 * The folder of the tests as the scripts see it. Graded code sees it too: without the record, which holds the repair,
 * and with the diff of this run, so that nothing there tells altered tests from true ones.
 */
function testsMount(directory: string, diff: string | undefined): Mount {
  const names = filesBelow(directory).filter((name) => !WITHHELD.has(name));
  const files = names.map((path) => {
    const place = join(directory, path);
    const content =
      path === DIFF_FILE && diff !== undefined ? new TextEncoder().encode(diff) : readFileSync(place);
    return { path, content, executable: (statSync(place).mode & 0o111) !== 0 };
  });
  return { target: TESTS_TARGET, files };
}

/** What the runner's side reads before any graded code is loaded; names of canaries are those of no test. */
function wishOf(nonce: string): object {
  const name = () => `test_${randomBytes(6).toString("hex")}`;
  return { nonce, canaries: [name(), name()] };
}

export function recordOf(task: LogTask): GradingRecord {
  const path = join(task.tests.directory, "config.json");
  const { parser } = task.tests.expected;
  const record = readRecord(
    JSON.parse(readFileSync(path, "utf8")),
    path,
    parser === undefined ? {} : { parser },
  );
  return { ...record, needsMarks: true };
}
