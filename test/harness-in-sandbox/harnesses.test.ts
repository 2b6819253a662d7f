/**
 * Every harness solves a real task inside a sandbox: scheduler, sandbox-manager, proxy, verifier and trainer run
 * as in a deployment, only the engine plays a script, with the calls that solve the task or with none. A runtime
 * that cannot be obtained here is a skipped test that says so.
 * MORTISE_HARNESSES names the harnesses to run, separated by commas; all when absent. MORTISE_HARNESS_BACKEND is
 * runc, docker, or remote-docker: an engine made for it, behind TLS, with a network of its own.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type HarnessSettings, Outcome, Stage, TerminationReason } from "@mortise/contracts";
import { ensureRuntime, type HarnessAdapter, type ToolVocabulary, type WireApi } from "@mortise/harness";
import { HARNESSES, harnessFolder } from "@mortise/harnesses";
import { DockerBackend, RuncBackend } from "@mortise/sandbox-manager";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RemoteEngine, whyNoEngine } from "../../services/sandbox-manager/test/remote/remote-engine.js";
import { Deployment, type TrialRecord } from "./deployment.js";
import { scriptLines } from "./script.js";
import { ON_HOST_IMAGE, solvingCalls, WITHOUT_LIBRARY, writeTasks } from "./task.js";

interface Subject {
  /** As the site file names it. */
  readonly name: string;
  readonly version: string;
  readonly settings: HarnessSettings;
  readonly vocabulary: ToolVocabulary;
  readonly hasTranscript: boolean;
  /** Whether it is the same harness as another one, over another model API: images are none of its business. */
  readonly isVariant: boolean;
  /** Absent for what needs no runtime. */
  readonly adapter?: HarnessAdapter;
}

const adapted = (adapter: HarnessAdapter, wireApi: WireApi): Subject => ({
  name: wireApi === adapter.wireApis[0] ? adapter.name : `${adapter.name}-${wireApi}`,
  version: adapter.version,
  settings: { adapter: adapter.name as "mini", wireApi, contextTokens: 300_000, maxOutputTokens: 4_096 },
  vocabulary: adapter.tools(wireApi),
  hasTranscript: adapter.transcript.length > 0,
  isVariant: wireApi !== adapter.wireApis[0],
  adapter,
});

/** A program without an adapter: everything Mortise knows of it is in the site file. */
const command: Subject = {
  name: "command",
  version: "1.0.0",
  settings: {
    directory: join(import.meta.dirname, "agent"),
    argv: ["node", "{runtime}/agent.cjs"],
    version: "1.0.0",
    environment: {
      AGENT_URL: "{model_url}",
      AGENT_KEY: "{token}",
      AGENT_TASK: "{instruction}",
      AGENT_SETTINGS: "{home}/agent/settings.json",
      AGENT_LOG: "{home}/agent/messages.json",
    },
    files: { "{home}/agent/settings.json": '{"model": "{model}", "maxTurns": 20}' },
    instruction: "In the working directory: {instruction}",
    exitCodes: { "9": "turn-limit" },
    transcript: ["agent/messages.json"],
  },
  vocabulary: { run: (script) => ({ name: "sh", arguments: { script } }) },
  hasTranscript: true,
  isVariant: false,
};

const asked = process.env.MORTISE_HARNESSES?.split(",");
const subjects = [
  ...HARNESSES.flatMap((one) => one.wireApis.map((wireApi) => adapted(one, wireApi))),
  command,
];
const chosen = subjects.filter(({ name }) => asked === undefined || asked.includes(name));
const wanted = process.env.MORTISE_HARNESS_BACKEND ?? "runc";
const backendName = wanted === "runc" ? "runc" : "docker";
const absent = wanted === "remote-docker" ? whyNoEngine() : undefined;
const engine =
  wanted === "remote-docker" && absent === undefined
    ? await RemoteEngine.start({ hasOwnNetwork: true })
    : undefined;
const backend =
  backendName === "docker"
    ? new DockerBackend({
        stateDirectory: tmpdir(),
        ...(engine === undefined ? {} : { engine: engine.settings }),
      })
    : new RuncBackend({ stateDirectory: tmpdir(), runc: "runc" });
const availability = absent === undefined ? await backend.availability() : { ok: false, reason: absent };
if (!availability.ok) console.log(`harnesses in sandboxes skipped: ${availability.reason}`);

const RUNS = ["solves", "idles", "in-image"] as const;
const runOf = (name: string, what: (typeof RUNS)[number]) => `${name}-${what}`;
/** What runs with the image's own C library, and says so when there is none. */
const isNative = ({ adapter }: Subject) => adapter?.name === "claude-code" || adapter?.name === "opencode";

describe.runIf(availability.ok)(`inside ${wanted}`, () => {
  const directory = mkdtempSync(join(tmpdir(), "mortise-harness-task-"));
  const tasks = join(directory, "tasks");
  const unobtainable = new Map<string, string>();
  let task: Awaited<ReturnType<typeof writeTasks>>;
  let deployment: Deployment;

  beforeAll(async () => {
    task = await writeTasks(tasks, directory);
    for (const { name, adapter } of chosen) {
      if (adapter === undefined) continue;
      const options = { folder: harnessFolder(adapter.name), onProgress: console.log };
      await ensureRuntime(adapter, options).catch((error: Error) => unobtainable.set(name, error.message));
    }
    const usable = chosen.filter(({ name }) => !unobtainable.has(name));
    const site = Object.fromEntries(usable.map(({ name, settings }) => [name, settings]));
    const runs = usable.flatMap(({ name }) => RUNS.map((what) => runOf(name, what)));
    const at = engine === undefined ? {} : { engine: engine.settings };
    deployment = await Deployment.start({ tasks, harness: site, runs, backend: backendName, ...at });
  });
  afterAll(async () => {
    await deployment?.stop();
    await engine?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  describe.each(chosen)("$name", (subject) => {
    const { name, vocabulary } = subject;

    const solves = () => scriptLines(solvingCalls(task, vocabulary), vocabulary);
    const trial = (what: (typeof RUNS)[number], split: string, script: readonly string[]) =>
      deployment.runTrial({ run: runOf(name, what), harness: name, split, script });

    test("solves the task, and the verifier says so", async ({ skip }) => {
      skip(unobtainable.has(name), unobtainable.get(name));
      const record = await trial("solves", ON_HOST_IMAGE, solves());
      expectSolved(record, subject);
      console.log(numbersOf(name, record));
    });

    test("that does nothing has not solved it", async ({ skip }) => {
      skip(unobtainable.has(name), unobtainable.get(name));
      const record = await trial("idles", ON_HOST_IMAGE, scriptLines([], vocabulary));
      const end = endOf(record);
      expect(end, end.outputTail).toMatchObject({
        termination: TerminationReason.COMPLETED,
        patchEntries: 0,
      });
      expect(record.verdict).toMatchObject({ outcome: Outcome.UNRESOLVED, reward: 0 });
    });

    test("in an image without a C library it solves the task or says what it lacks", async ({ skip }) => {
      skip(unobtainable.has(name), unobtainable.get(name));
      skip(subject.isVariant, "shown with the harness's first model API");
      const record = await trial("in-image", WITHOUT_LIBRARY, solves());
      if (isNative(subject)) {
        expect(record.reports.at(-1)!.fact).toMatchObject({
          case: "failed",
          value: { code: "MORTISE_HARNESS_UNFIT", reason: expect.stringContaining("no C library") },
        });
        expect(record).toMatchObject({ solved: 0, invalid: 1 });
      } else expectSolved(record, subject);
    });
  });
});

function expectSolved(record: TrialRecord, { version, hasTranscript }: Subject): void {
  const end = endOf(record);
  expect(end, end.outputTail).toMatchObject({
    termination: TerminationReason.COMPLETED,
    harnessVersion: version,
    patchEntries: 1,
  });
  expect(end.transcriptFiles > 0).toBe(hasTranscript);
  expect(record.verdict).toMatchObject({ outcome: Outcome.RESOLVED, reward: 1 });
  expect(record).toMatchObject({ solved: 1, invalid: 0 });
}

function endOf({ reports }: TrialRecord) {
  const { fact } = reports.at(-1)!;
  if (fact.case !== "ended") throw new Error(`the sandbox reported ${JSON.stringify(fact)}`);
  return fact.value;
}

/** Times by stage, for the docs: never asserted. */
function numbersOf(name: string, { reports, ended }: TrialRecord): string {
  const stages = reports.at(-1)!.stages.map(({ stage, wallMs, cpuMs, modelMs }) => {
    const parts = [`${Math.round(wallMs)} ms`];
    if (cpuMs !== undefined) parts.push(`cpu ${Math.round(cpuMs)}`);
    if (modelMs !== undefined) parts.push(`model ${Math.round(modelMs)}`);
    return `${Stage[stage].toLowerCase()} ${parts.join(", ")}`;
  });
  const peak = ended?.usage?.memoryPeakBytes;
  return `${name}: ${stages.join("; ")}; memory ${peak === undefined ? "unknown" : `${Math.round(peak / 1024 ** 2)} MiB`}`;
}
