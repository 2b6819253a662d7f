/** `mortise export` of a run recorded on a real nats-server: what comes out is what was captured. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { assembleTrial, TurnTree, unpackIds, unpackLogProbabilities } from "@mortise/capture";
import { Outcome } from "@mortise/contracts";
import { parquetReadObjects } from "hyparquet";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { atifTrajectory } from "../../src/export/atif.js";
import { AtifTrajectory } from "../../src/export/atif-schema.js";
import { exportedTrials } from "../../src/export/exported-trial.js";
import { PolicyText } from "../../src/report/policy-text.js";
import { fromArchive } from "../../src/report/run-history.js";
import { trialFacts } from "../../src/report/trial-facts.js";
import { RecordedRun, RUN, TRIALS } from "../report/recorded-run.js";

const CLI = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const run = promisify(execFile);
/** A Python with the package `harbor`, its dependencies or just pydantic. */
const HARBOR_PYTHON = process.env.MORTISE_HARBOR_PYTHON;
/** The models alone are imported: the package's own beginnings import the whole application. */
const VALIDATE = `
import glob, importlib.util, json, sys, types
root = importlib.util.find_spec("harbor").submodule_search_locations[0]
for name, path in (("harbor", root), ("harbor.models", root + "/models")):
    module = types.ModuleType(name)
    module.__path__ = [path]
    sys.modules[name] = module
from harbor.models.trajectories import Trajectory
documents = glob.glob(sys.argv[1] + "/*.json")
for document in documents:
    Trajectory.model_validate(json.load(open(document)))
print(len(documents))
`;
const TOKEN = randomBytes(240).toString("base64url");

let recorded: RecordedRun;
beforeAll(async () => {
  recorded = await RecordedRun.start();
  for (const trial of TRIALS) await recorded.record(trial);
  await recorded.record({
    trial: "g1-0",
    group: "g1",
    slot: 0,
    task: "c",
    outcome: Outcome.RESOLVED,
    turns: [
      { text: "", calls: [{ name: "Bash", arguments: { command: "env" } }], results: [`KEY=${TOKEN}`] },
      { text: "Done." },
    ],
  });
  await recorded.makeArchive();
}, 120_000);
afterAll(() => recorded.stop());

async function exportRun(format: string, out: string, ...args: string[]) {
  const place = ["--site", recorded.site, "--checkpoint", recorded.checkpoint];
  const path = join(recorded.directory, out);
  const { stdout } = await run(process.execPath, [
    CLI,
    ...["export", RUN, "--format", format, "--out", path, "--json"],
    ...place,
    ...args,
  ]);
  return { path, result: JSON.parse(stdout.trim().split("\n").at(-1)!) };
}

// biome-ignore lint/suspicious/noExplicitAny: rows are read as a stranger would read them
type Row = any;
const lines = async (path: string): Promise<Row[]> =>
  (await readFile(path, "utf8"))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

describe("an export", { timeout: 120_000 }, () => {
  test("rows are the assembled sequences: ids, mask, log-probabilities, versions", async () => {
    const { path, result } = await exportRun("jsonl", "rows.jsonl");
    const rows = await lines(path);
    expect(result).toMatchObject({ trials: 6, tasks: 2, sequences: rows.length });
    expect([...new Set(rows.map(({ trial }) => trial))]).toEqual([
      "after-0-0",
      "before-0-0",
      "before-1-0",
      "g0-0",
      "g0-1-r1",
      "g0-2",
    ]);
    for (const seal of recorded.seals.filter(({ trial }) => rows.some((row) => row.trial === trial))) {
      const { sequences } = assembleTrial(
        recorded.turns.filter((turn) => turn.trial === seal.trial),
        seal,
      );
      const own = rows.filter((row) => row.trial === seal.trial);
      expect(own.map(({ leaf }) => leaf)).toEqual(sequences.map(({ leaf }) => leaf));
      for (const [at, row] of own.entries()) {
        const sequence = sequences[at]!;
        expect(row.ids).toEqual([...sequence.ids]);
        expect(row.mask).toEqual([...sequence.mask]);
        for (const [token, trained] of row.mask.entries())
          if (trained === 1) expect([row.log_probabilities[token], row.versions[token]]).toEqual([-0.25, 3]);
        expect(row.log_probabilities[0]).toBeNull();
        expect(row.versions[0]).toBeNull();
      }
    }
    expect(rows.find(({ trial }) => trial === "g0-0")).toMatchObject({
      schema: 1,
      set: "training",
      group: "g0",
      task: "a",
      harness: "claude-code",
      harness_version: "2.1.332",
      verdict: "resolved",
      reward: 1,
    });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test("parquet holds the same rows", async () => {
    const jsonl = await lines((await exportRun("jsonl", "same.jsonl", "--only", "all")).path);
    const { path } = await exportRun("parquet", "same.parquet", "--only", "all");
    const { buffer, byteOffset, byteLength } = await readFile(path);
    const file = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
    const rows = (await parquetReadObjects({ file, utf8: false })).map((row) => ({
      ...row,
      ids: [...unpackIds(row.ids)],
      mask: [...row.mask],
      log_probabilities: [...unpackLogProbabilities(row.log_probabilities)].map((one) =>
        Number.isNaN(one) ? null : one,
      ),
      versions: [...unpackIds(row.versions)].map((version) => (version < 0 ? null : version)),
    }));
    expect(rows.map((row: Row) => ({ ...row, sequence: Number(row.sequence) }))).toEqual(jsonl);
  });

  test("an export of nothing is an empty file of the right form", async () => {
    const { path, result } = await exportRun("parquet", "none.parquet", "--set", "nothing");
    const { buffer, byteOffset, byteLength } = await readFile(path);
    const file = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
    expect(result).toMatchObject({ trials: 0, sequences: 0 });
    expect(await parquetReadObjects({ file })).toEqual([]);
  });

  test("ATIF documents hold the schema and the exact ids of each turn", async () => {
    const { path } = await exportRun("atif", "atif");
    const names = (await readdir(path)).sort();
    expect(names).toHaveLength(6);
    for (const name of names) {
      const document = AtifTrajectory.parse(JSON.parse(await readFile(join(path, name), "utf8")));
      const turns = recorded.turns.filter((turn) => `${turn.trial}.json` === name);
      const tree = new TurnTree();
      for (const turn of turns) tree.add(turn);
      const agent = document.steps.filter(({ source }) => source === "agent");
      expect(agent).toHaveLength(turns.length);
      for (const [at, { metrics }] of agent.entries()) {
        const turn = turns[at]!;
        expect(metrics!.prompt_token_ids).toEqual([...tree.contextOf(turn.turn)]);
        expect(metrics!.completion_token_ids).toEqual([...unpackIds(turn.sampledIds)]);
        expect(metrics!.logprobs).toEqual(metrics!.completion_token_ids!.map(() => -0.25));
      }
    }
  });

  test("ATIF steps read as what was said, and mark what must not be trained", async () => {
    const { path } = await exportRun("atif", "atif-read", "--only", "resolved", "--set", "training");
    const document: AtifTrajectory = JSON.parse(await readFile(join(path, "g0-0.json"), "utf8"));
    const told = document.steps.map((step) => [
      step.source,
      step.message,
      (step.tool_calls ?? []).map((call) => call.function_name).join(),
      (step.observation?.results ?? []).map(({ content }) => content).join("|"),
      step.is_copied_context ?? false,
    ]);
    expect(told).toEqual([
      ["system", "You repair code.", "", "", false],
      ["user", "Repair a.", "", "", false],
      ["agent", "Looking.", "Read", "1\tprint(1)", false],
      ["agent", "", "Bash", "Exit code 1\n1 failed", false],
      ["agent", "Never seen.", "", "", true],
      ["agent", "", "Edit,Read", "updated|1\tprint(2)", false],
      ["agent", "Done.", "", "", false],
    ]);
    expect(document.steps[4]!.extra).toMatchObject({ trainable_tokens: 0, excluded: "abandoned" });
    expect(document.steps[2]!.tool_calls![0]!.arguments).toEqual({ file_path: "/w/a.py" });
    expect(document).toMatchObject({
      schema_version: "ATIF-v1.7",
      trajectory_id: "g0-0",
      agent: { name: "claude-code", version: "2.1.332", model_name: "policy" },
      final_metrics: { total_steps: 7 },
      extra: { verdict: "resolved", reward: 1, task: "a" },
    });
  });

  test("a sub-agent's thread is embedded, and named where it was started", async () => {
    const history = await fromArchive(recorded.archive, RUN, undefined);
    const text = await PolicyText.open(recorded.checkpoint);
    const facts = trialFacts(history).filter(({ trial }) => trial === "g0-0");
    const { trials } = exportedTrials(history, facts, text);
    const [own] = trials;
    const root = own!.turns[0]!;
    const side = { ...root, turn: "side", index: 9, thread: "sub-1", spawnedBy: own!.turns[1]!.turn };
    const document = atifTrajectory({ ...own!, turns: [...own!.turns, side] }, text);
    expect(document.subagent_trajectories).toHaveLength(1);
    expect(document.subagent_trajectories![0]).toMatchObject({ trajectory_id: "g0-0/sub-1" });
    expect(document.steps[3]!.observation!.results.at(-1)).toEqual({
      subagent_trajectory_ref: [{ trajectory_id: "g0-0/sub-1" }],
    });
    expect(document.steps).toHaveLength(7);
  });

  test.skipIf(HARBOR_PYTHON === undefined)(
    "Harbor's own models take every document (skipped unless MORTISE_HARBOR_PYTHON names a Python that has them)",
    async () => {
      const { path } = await exportRun("atif", "atif-harbor", "--only", "all");
      const { stdout } = await run(HARBOR_PYTHON!, ["-c", VALIDATE, path]);
      expect(Number(stdout)).toBe((await readdir(path)).length);
    },
  );

  test("at most so many a task, always the same ones", async () => {
    const args = ["--only", "resolved", "--at-most", "1", "--set", "training"];
    const first = await lines((await exportRun("jsonl", "rft-1.jsonl", ...args)).path);
    const again = await lines(
      (await exportRun("jsonl", "rft-2.jsonl", ...args, "--archive", recorded.archive)).path,
    );
    expect(again).toEqual(first);
    expect(new Set(first.map(({ trial }) => trial)).size).toBe(1);
    for (const row of first) expect(row).toMatchObject({ task: "a", verdict: "resolved" });
  });

  test.each(["atif", "jsonl", "parquet"])(
    "%s: a trial that holds a session token stays at home",
    async (format) => {
      const { path, result } = await exportRun(format, `secret-${format}`, "--only", "all");
      expect(result.leftOut).toEqual([
        { trial: "g0-1", reason: "it has no turn" },
        { trial: "g1-0", reason: "it holds a session token" },
      ]);
      if (format === "atif") expect(await readdir(path)).not.toContain("g1-0.json");
      else expect((await readFile(path)).includes("g1-0")).toBe(false);
    },
  );

  test("what exists is never overwritten, and a missing checkpoint is named", async () => {
    await exportRun("jsonl", "once.jsonl");
    await expect(exportRun("jsonl", "once.jsonl")).rejects.toMatchObject({
      stderr: expect.stringMatching(/MORTISE_OPERATOR_USAGE \(--out\)/),
    });
    const args = [CLI, "export", RUN, "--format", "jsonl", "--archive", recorded.archive];
    await expect(
      run(process.execPath, [...args, "--out", join(recorded.directory, "x")]),
    ).rejects.toMatchObject({
      stderr: expect.stringMatching(/MORTISE_OPERATOR_USAGE \(--checkpoint\)/),
    });
    expect((await readdir(recorded.directory)).filter((name) => name.startsWith(".mortise-export"))).toEqual(
      [],
    );
  });
});
