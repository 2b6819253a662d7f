/**
 * Released bugs of real projects, as a user would take them through: records are imported, the tasks validated, then
 * mini-swe-agent runs on each with every service of a deployment, the scripted engine making the project's own repair
 * or nothing, and the verifier says which. A trial in an image that still has the repaired release never starts.
 * MORTISE_REAL_TASKS names an empty directory for records, images and task directories, which stay there.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Outcome, Stage, TerminationReason, TestStatus } from "@mortise/contracts";
import { ensureRuntime, type ToolUse } from "@mortise/harness";
import { HARNESSES, harnessFolder } from "@mortise/harnesses";
import { RuncBackend } from "@mortise/sandbox-manager";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { KeptImage } from "../../services/verifier/test/kept-image.js";
import { pythonImage } from "../../services/verifier/test/python-image.js";
import { Deployment, type TrialRecord } from "../harness-in-sandbox/deployment.js";
import { scriptLines } from "../harness-in-sandbox/script.js";
import { mortise } from "./command.js";
import { packagesOf } from "./environment.js";
import { PROJECTS, type RealProject } from "./projects.js";
import { archiveOf } from "./releases.js";
import { type RealTask, TaskSet } from "./task-set.js";

const GOLD_RUNS = 3;
const HARNESS = HARNESSES.find(({ name }) => name === "mini-swe-agent")!;
/** Enough for a pure-Python project; the defaults of an import are for the largest of SWE-bench. */
const LIMITS = ["--memory-mb", "1024", "--storage-mb", "256"];

const python = pythonImage();
const absent = await whatIsAbsent();
if (absent !== undefined) console.log(`tasks of real projects are skipped: ${absent}`);

async function whatIsAbsent(): Promise<string | undefined> {
  if ("missing" in python) return python.missing;
  const runc = await new RuncBackend({ stateDirectory: tmpdir(), runc: "runc" }).availability();
  if (!runc.ok) return runc.reason;
  try {
    for (const { base, repaired } of PROJECTS) for (const release of [base, repaired]) archiveOf(release);
    await ensureRuntime(HARNESS, { folder: harnessFolder(HARNESS.name), onProgress: console.log });
  } catch (error) {
    return (error as Error).message;
  }
  return undefined;
}

/** Where a release stays behind in images: beside others, or as sources somebody built from. */
const LEFT = {
  installed: (image: KeptImage) => join(packagesOf(image), "later"),
  sources: () => "opt/build/src",
};
const LEAKS = Object.keys(LEFT) as (keyof typeof LEFT)[];
const leaky = PROJECTS[0]!;
const leakOf = (leak: string) => `${leaky.repo.replace("/", "__")}-leak-${leak}`;
/** As an import names directories: a point of an instance id is none of a name. */
const idOf = ({ instance }: Pick<RealProject, "instance">) => instance.replaceAll(".", "-");
const runOf = (id: string, what: string) => `${id}-${what}`;

describe.skipIf(absent !== undefined)("tasks of real projects", () => {
  const kept = process.env.MORTISE_REAL_TASKS;
  const directory = kept ?? mkdtempSync(join(tmpdir(), "mortise-real-tasks-"));
  const tasks = join(directory, "tasks");
  const made = new Map<string, RealTask>();
  let validated: { validated: number; invalid: number; egressFree: number; tasks: unknown[] };
  let deployment: Deployment;

  beforeAll(async () => {
    const set = await TaskSet.start(directory, python as KeptImage);
    const leaks: { id: string; records: string }[] = [];
    try {
      for (const project of PROJECTS) made.set(project.instance, await set.make(project));
      for (const leak of LEAKS) {
        const place = LEFT[leak](python as KeptImage);
        const instance = leakOf(leak);
        const records = set.makeLeaky(made.get(leaky.instance)!, instance, place);
        leaks.push({ id: instance, records });
      }
    } finally {
      await set.stop();
    }
    const bring = (records: string, split: string) =>
      mortise("tasks", "import", records, "--out", tasks, "--split", split, ...LIMITS);
    for (const { project, records } of made.values()) await bring(records, idOf(project));
    const answer = await mortise(
      "tasks",
      "validate",
      tasks,
      "--gold",
      String(GOLD_RUNS),
      "--jobs",
      "1",
      "--json",
    );
    validated = JSON.parse(answer);
    for (const { id, records } of leaks) await bring(records, id);
    const runs = PROJECTS.flatMap((project) => ["solves", "idles"].map((what) => runOf(idOf(project), what)));
    deployment = await Deployment.start({
      tasks,
      harness: { agent: { adapter: "mini-swe-agent", contextTokens: 300_000, maxOutputTokens: 8_192 } },
      runs: [...runs, ...leaks.map(({ id }) => runOf(id, "solves"))],
      backend: "runc",
    });
  });
  afterAll(async () => {
    await deployment?.stop();
    if (kept === undefined) rmSync(directory, { recursive: true, force: true });
  });

  const trial = (split: string, what: "solves" | "idles", task: RealTask) =>
    deployment.runTrial({
      run: runOf(split, what),
      harness: "agent",
      split,
      script: scriptLines(what === "solves" ? solvingCalls(task) : [], HARNESS.tools("chat")),
    });

  test("every gold patch resolves, nothing does not, and neither needs a network", () => {
    expect(validated).toMatchObject({
      validated: PROJECTS.length,
      invalid: 0,
      flaky: 0,
      egressFree: PROJECTS.length,
    });
    for (const project of PROJECTS)
      expect(validated.tasks).toContainEqual(
        expect.objectContaining({
          id: idOf(project),
          gold: { resolved: GOLD_RUNS, attempts: GOLD_RUNS },
          noop: {
            resolved: false,
            attempts: 1,
            failed: expect.arrayContaining([...made.get(project.instance)!.lists.failToPass]),
          },
        }),
      );
  });

  describe.each(PROJECTS)("$instance", (project) => {
    const task = () => made.get(project.instance)!;

    test("the project's own repair, made by an agent, is resolved", async () => {
      const record = await trial(idOf(project), "solves", task());
      const end = endOf(record);
      expect(end, end.outputTail).toMatchObject({
        termination: TerminationReason.COMPLETED,
        harnessVersion: HARNESS.version,
        patchEntries: expect.any(Number),
      });
      console.log(numbersOf(project, record));
      expect(record.verdict, record.verdict?.reason).toMatchObject({ outcome: Outcome.RESOLVED, reward: 1 });
      const { failToPass, passToPass } = task().lists;
      expect(record.verdict!.tests.map(({ name }) => name).sort()).toEqual(
        [...failToPass, ...passToPass].sort(),
      );
      expect(record).toMatchObject({ solved: 1, invalid: 0 });
    });

    test("doing nothing is unresolved, with the tests that need the repair", async () => {
      const record = await trial(idOf(project), "idles", task());
      expect(endOf(record).patchEntries).toBe(0);
      expect(record.verdict, record.verdict?.reason).toMatchObject({
        outcome: Outcome.UNRESOLVED,
        reward: 0,
      });
      const failed = record.verdict!.tests.filter(({ status }) => status !== TestStatus.PASSED);
      expect(failed.map(({ name }) => name).sort()).toEqual(task().lists.failToPass);
    });
  });

  test.each(LEAKS)(
    "the repaired release left in the image (%s) is found, and no agent runs",
    async (leak) => {
      const record = await trial(leakOf(leak), "solves", made.get(leaky.instance)!);
      const { fact } = record.reports.at(-1)!;
      expect(fact).toMatchObject({ case: "failed", value: { code: "MORTISE_SANDBOX_SEAL_ANSWER" } });
      console.log(`${leak}: ${fact.case === "failed" ? fact.value.reason : fact.case}`);
      expect(record.verdict).toBeUndefined();
      expect(record).toMatchObject({ solved: 0, invalid: 1 });
    },
  );
});

/** Looks at the bug, applies the repair as the project made it, looks again and runs the tests that are there. */
function solvingCalls({ project, workTree }: RealTask): ToolUse[] {
  const run = HARNESS.tools("chat").run!;
  const reproduce = `python3 - <<'END_OF_SCRIPT' 2>&1 | tail -1\n${project.reproduction}\nEND_OF_SCRIPT`;
  return [
    run(`git log --oneline --all && ${reproduce}`),
    run(`git apply - <<'END_OF_PATCH'\n${workTree.gold}END_OF_PATCH`),
    run(`${reproduce}\npytest -q ${project.tests.join(" ")} | tail -1; git status --short`),
  ];
}

function endOf({ reports }: TrialRecord) {
  const { fact } = reports.at(-1)!;
  if (fact.case !== "ended") throw new Error(`the sandbox reported ${JSON.stringify(fact)}`);
  return fact.value;
}

/** For the docs: never asserted. */
function numbersOf({ instance }: RealProject, { reports, verdict, ended }: TrialRecord): string {
  const { fact, stages } = reports.at(-1)!;
  const times = stages.map(({ stage, wallMs }) => `${Stage[stage].toLowerCase()} ${Math.round(wallMs)} ms`);
  const peak = Math.round((ended?.usage?.memoryPeakBytes ?? Number.NaN) / 1024 ** 2);
  const entries = fact.case === "ended" ? fact.value.patchEntries : 0;
  const found = [...(verdict?.findings ?? []), ...(verdict?.stripped ?? [])];
  const findings = found.map(({ subject, detail }) => `${subject}: ${detail}`);
  return [
    `${instance}: ${verdict?.grader}: ${verdict?.reason} (${verdict?.tests.length})`,
    `  ${times.join(", ")}; ${peak} MiB; ${entries} entries in the patch; findings: ${findings.join("; ") || "none"}`,
  ].join("\n");
}
