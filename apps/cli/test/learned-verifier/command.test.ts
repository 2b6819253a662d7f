/** `mortise learned-verifier` on records of a real nats-server and the archive a real archiver made of them. */
import { randomBytes } from "node:crypto";
import { cp, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Outcome, TerminationReason } from "@mortise/contracts";
import { openCheckpoint } from "@mortise/policy";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RecordedRun, type RecordedTrial, RUN } from "../report/recorded-run.js";
import { mortise, resultOf } from "../site/mortise-command.js";

const TASKS = ["a", "b", "c", "d", "e", "f"];
const PER_TASK = 4;

const attempt = (task: string, at: number, outcome: Outcome | undefined, words: string): RecordedTrial => ({
  trial: `${task}-${at}`,
  group: `g-${task}`,
  slot: at,
  task,
  ...(outcome === undefined ? { termination: TerminationReason.SANDBOX_LOST } : { outcome }),
  turns: [
    {
      text: words,
      calls: [{ name: "Edit", arguments: { file_path: "/w/a.py", old_string: "1", new_string: words } }],
      results: ["updated"],
    },
    { text: "Done." },
  ],
});

/** Six tasks with two resolved and two unresolved attempts; three trials that must never be shown. */
const TRIALS: readonly RecordedTrial[] = [
  ...TASKS.flatMap((task) =>
    Array.from({ length: PER_TASK }, (_, at) =>
      at % 2 === 0
        ? attempt(task, at, Outcome.RESOLVED, `mends ${task}`)
        : attempt(task, at, Outcome.UNRESOLVED, `breaks ${task}`),
    ),
  ),
  attempt("a", 4, Outcome.INVALID_TAMPER, "reads the answer"),
  attempt("b", 4, undefined, "lost"),
  attempt("c", 4, Outcome.RESOLVED, `key ${randomBytes(240).toString("base64url")}`),
];

let recorded: RecordedRun;
beforeAll(async () => {
  recorded = await RecordedRun.start();
  for (const trial of TRIALS) await recorded.record(trial);
  await recorded.makeArchive();
}, 120_000);
afterAll(() => recorded.stop());

const at = (name: string) => join(recorded.directory, name);
const source = () => ["--site", recorded.site, "--tokenizer", recorded.checkpoint, "--json"];

async function train(out: string, ...args: string[]) {
  const given = ["--checkpoint", recorded.checkpoint, "--out", at(out), "--epochs", "2", "--batch-size", "8"];
  return mortise(["learned-verifier", "train", RUN, ...given, ...source(), ...args]);
}

// biome-ignore lint/suspicious/noExplicitAny: rows are read as a stranger would read them
type Row = any;
const rowsOf = async (path: string): Promise<Row[]> =>
  (await readFile(path, "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("a learned verifier", { timeout: 180_000 }, () => {
  test("is trained on balanced attempts of some tasks and measured on all attempts of the others", async () => {
    const ended = await train("verifier", "--held-out", "0.34", "--scores", at("scores.jsonl"));
    expect(ended.status, ended.stderr).toBe(0);
    const { manifest, leftOut, sets } = resultOf(ended);
    expect(manifest).toMatchObject({
      format: 1,
      maxTokens: 4096,
      data: {
        examples: 16,
        resolved: 8,
        unresolved: 8,
        shortened: 0,
        leftOut: 1,
        invalid: 2,
        sources: [{ run: RUN, set: "training", examples: 16 }],
      },
      training: { epochs: 2, batchSize: 8, steps: 4 },
    });
    expect(leftOut).toEqual([{ trial: "c-4", reason: "it holds a session token" }]);
    expect([...manifest.trainedTasks, ...manifest.heldOutTasks].sort()).toEqual(TASKS);
    expect(manifest.heldOutTasks).toHaveLength(2);

    const rows = await rowsOf(at("scores.jsonl"));
    expect((await stat(at("scores.jsonl"))).mode & 0o777).toBe(0o600);
    expect(rows.map(({ trial }) => trial).sort()).toEqual(
      manifest.heldOutTasks.flatMap((task: string) => [0, 1, 2, 3].map((index) => `${task}-${index}`)),
    );
    for (const row of rows) {
      expect(row.resolved).toBe(row.trial.endsWith("0") || row.trial.endsWith("2"));
      expect(row.p_yes).toBeCloseTo(1 / (1 + Math.exp(row.log_no - row.log_yes)), 12);
    }
    expect(sets).toHaveLength(1);
    expect(sets[0]).toMatchObject({ run: RUN, set: "training", tasks: 2, attempts: 8, resolved: 4 });
    // Two of four resolved: pass@1 ½, pass@2 1 − 1/6, pass@4 1, whatever was learnt.
    expect(sets[0].scaling.map(({ n, oracle }: Row) => [n, Number(oracle.toFixed(9))])).toEqual([
      [1, 0.5],
      [2, Number((5 / 6).toFixed(9))],
      [4, 1],
    ]);
    expect(sets[0].scaling[0].best).toBeCloseTo(0.5, 12);
  });

  test("is a checkpoint other tools open, with weights that moved", async () => {
    const [before, after] = await Promise.all([recorded.checkpoint, at("verifier")].map(openCheckpoint));
    expect(after!.config).toEqual(before!.config);
    expect(after!.weights).not.toEqual(before!.weights);
  });

  test("is the same when it is made again, and from the archive", async () => {
    const first = JSON.parse(await readFile(at("verifier/learned-verifier.json"), "utf8"));
    const again = await train("again", "--held-out", "0.34", "--archive", recorded.archive);
    expect(again.status, again.stderr).toBe(0);
    expect(resultOf(again).manifest).toEqual(first);
  });

  test("scores what it was not trained on as it did when it was made, and says what it left", async () => {
    const scored = await mortise([
      ...["learned-verifier", "score", RUN, "--verifier", at("verifier"), "--scores", at("again.jsonl")],
      ...source(),
    ]);
    expect(scored.status, scored.stderr).toBe(0);
    expect(resultOf(scored)).toMatchObject({ trainedOn: 16 });
    expect(await rowsOf(at("again.jsonl"))).toEqual(await rowsOf(at("scores.jsonl")));
  });

  test("prints what choosing is worth", async () => {
    const scored = await mortise([
      ...["learned-verifier", "score", RUN, "--verifier", at("verifier"), "--set", "training"],
      ...source().slice(0, -1),
    ]);
    expect(scored.status, scored.stderr).toBe(0);
    expect(scored.stdout).toMatch(/r1\/training: 8 attempts at 2 tasks, 4 resolved/);
    expect(scored.stdout).toMatch(/n = 4 {7}best@n [\d.]+ % {2}oracle 100\.0 %/);
    for (const name of ["gain", "AUC", "calibration", "precision"])
      expect(scored.stdout).toContain(`  ${name}`);
  });

  test("is refused with other weights, another template, or no manifest", async () => {
    await cp(at("verifier"), at("altered"), { recursive: true });
    await cp(join(recorded.checkpoint, "model.safetensors"), at("altered/model.safetensors"));
    await cp(at("verifier"), at("other"), { recursive: true });
    const manifest = JSON.parse(await readFile(at("other/learned-verifier.json"), "utf8"));
    await writeFile(
      at("other/learned-verifier.json"),
      JSON.stringify({ ...manifest, templateSha256: "0".repeat(64) }),
    );
    for (const [directory, words] of [
      [at("altered"), "weights"],
      [at("other"), "template"],
      [recorded.checkpoint, "learned-verifier.json"],
    ] as const) {
      const ended = await mortise(["learned-verifier", "score", RUN, "--verifier", directory, ...source()]);
      expect(ended.status).not.toBe(0);
      expect(resultOf(ended).error).toMatchObject({
        code: "MORTISE_POLICY_CHECKPOINT",
        field: "--verifier",
        message: expect.stringContaining(words),
      });
    }
  });

  test("is not made where nothing can be learnt, over something that exists, or of an unknown set", async () => {
    const short = await train("short", "--max-tokens", "8");
    expect(resultOf(short).error).toMatchObject({ code: "MORTISE_OPERATOR_USAGE", field: "runId" });
    const exists = await train("verifier");
    expect(resultOf(exists).error).toMatchObject({ code: "MORTISE_OPERATOR_USAGE", field: "--out" });
    const unknown = await train("unknown", "--set", "before");
    expect(resultOf(unknown).error).toMatchObject({
      code: "MORTISE_OPERATOR_USAGE",
      field: "--set",
      fix: "Use some of: training.",
    });
  });
});
