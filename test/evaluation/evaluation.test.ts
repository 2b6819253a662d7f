/** Evaluations on a site that is up: exact counts, lost trials, shown tests, one protocol against another. */
import { join } from "node:path";
import { openCheckpoint } from "@mortise/policy";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { END_OF_TURN } from "../../apps/cli/src/conformance/policy-files.js";
import { FakeVllm } from "../../services/proxy/test/fake-vllm.js";
import { mortise } from "./mortise.js";
import { ATTEMPTS, type Attempt, TASKS, World } from "./world.js";

const world = new World();
beforeAll(() => world.start());
afterAll(() => world.stop());

const EXPECTED = TASKS * ATTEMPTS;

describe("a scripted solver", () => {
  const solves: readonly Attempt[] = ["0-0", "0-1", "1-1"];
  const run = world.newRun();

  test("is measured exactly: what it solves of what was expected", async () => {
    const given = ["--protocol", world.protocol(), "--concurrency", "3"];
    const { code, json, stderr } = await mortise(
      "eval",
      ...given,
      ...world.measured(run, world.script(solves)),
    );
    expect(code, stderr).toBe(0);
    expect(json).toMatchObject({
      schema: 1,
      command: "eval",
      run,
      attempts: { expected: EXPECTED, executed: EXPECTED, resolved: solves.length, lost: 0, retried: 0 },
      solving: { tasks: TASKS, attempts: EXPECTED, solved: solves.length, rate: solves.length / EXPECTED },
      difficulty: { never: 2, hard: 0, medium: 1, easy: 0, always: 1 },
      harness: { name: "agent", versions: ["1.0.0"] },
      graders: ["json-lines/1"],
      isComplete: true,
      problems: [],
      interrupted: null,
    });
    expect(json.protocol).toMatchObject({ name: "test", digest: expect.stringMatching(/^[0-9a-f]{64}$/) });
    // 1 − C(0,2)/C(2,2) of the solved task, of the mixed one the same, 0 of the others.
    expect(json.solving.at).toMatchObject([
      { k: 1, pass: 3 / 8 },
      { k: 2, pass: 0.5, passHat: 0.25 },
    ]);
  });

  test("has a row a trial, and a reward in those that count", () => {
    const rows = world.rows(run, "attempts.jsonl");
    expect(rows).toHaveLength(EXPECTED);
    const resolved = rows.filter((row) => row.resolved === true);
    const name = (row: Record<string, unknown>) =>
      `${world.entries.findIndex(({ id }) => id === row.task)}-${row.attempt}`;
    expect(resolved.map(name).sort()).toEqual([...solves].sort());
    for (const row of rows)
      expect(row).toMatchObject({ counted: true, retry: 0, reward: row.resolved ? 1 : 0 });
  });

  test("leaves difficulties that choosing tasks reads", async () => {
    const out = join(world.directory, "chosen");
    const rates = join(world.runDirectory(run), "result", "difficulty.jsonl");
    const index = join(world.runDirectory(run), "result", "index");
    for (const source of [["--solve-rates", rates], []]) {
      const chosen = await mortise(
        "tasks",
        "index",
        index,
        ...source,
        "--solve-rate",
        "0.1..0.9",
        "--out",
        out,
        "--replace",
      );
      expect(chosen.code, chosen.stderr).toBe(0);
      expect(chosen.json).toMatchObject({ tasks: 1 });
    }
  });

  test("is not measured otherwise under the same id", async () => {
    const given = ["--protocol", world.protocol({ attempts: 1 })];
    const { code, json } = await mortise("eval", ...given, ...world.measured(run, world.script(solves)));
    expect({ code, error: json.error }).toMatchObject({
      code: 2,
      error: { code: "MORTISE_OPERATOR_RUN_EXISTS", field: "--run-id" },
    });
  });

  test("is reported with its protocol", async () => {
    const { code, json } = await mortise("report", run, "--site", world.siteFile);
    expect(code).toBe(0);
    expect(json).toMatchObject({
      run,
      protocol: { name: "test" },
      sets: [{ set: "evaluation", trials: EXPECTED }],
    });
  });
});

test("a lost trial is tried again, and one that is lost for good is no attempt that failed", async () => {
  const run = world.newRun();
  const fails = (trial: string) => ({ trial, fails: true });
  const script = world.script(
    ["0-0"],
    [fails("0-1"), { trial: "0-1r1", shell: world.repair(0) }, fails("1-0"), fails("1-0r1"), fails("1-0r2")],
  );
  const { code, json, stderr } = await mortise(
    "eval",
    "--protocol",
    world.protocol(),
    ...world.measured(run, script),
  );
  expect(json.attempts, stderr).toMatchObject({
    expected: EXPECTED,
    executed: EXPECTED - 1,
    resolved: 2,
    lost: 1,
    lostBy: { infrastructure: 1 },
    open: 0,
    bounds: [2 / EXPECTED, 3 / EXPECTED],
    retried: 3,
  });
  expect(json.perTask.find(({ task }: { task: string }) => task === world.entries[1]!.id)).toMatchObject({
    attempts: 1,
    resolved: 0,
  });
  expect(json).toMatchObject({
    isComplete: false,
    problems: ["1 of 8 attempts have no verdict that counts"],
  });
  // What is not what its protocol asked for is no success.
  expect(code).toBe(1);
  const lost = world.rows(run, "attempts.jsonl").filter((row) => !row.counted);
  expect(lost.map(({ trial }) => trial).sort()).toEqual(
    ["evaluation-0-1", "evaluation-1-0", "evaluation-1-0r1", "evaluation-1-0r2"].sort(),
  );
  for (const row of lost) expect(row).toMatchObject({ reward: null, resolved: null, verdict: null });
});

test("an endpoint is asked for every attempt; a fake of a vLLM server, whose model does nothing", async () => {
  const vllm = await FakeVllm.start();
  try {
    const { tokenizer } = await openCheckpoint(world.checkpoint);
    const ids = [...tokenizer.encode(`true${END_OF_TURN}`)];
    vllm.play(...Array.from({ length: EXPECTED }, () => ({ pieces: [{ ids }] })));
    const run = world.newRun();
    const measured = world.measured(run, vllm.url);
    const { code, json, stderr } = await mortise("eval", "--protocol", world.protocol(), ...measured);
    expect(code, stderr).toBe(0);
    expect(json).toMatchObject({
      model: { engine: "vllm", servers: [vllm.url], weights: [expect.any(String)] },
      attempts: { expected: EXPECTED, executed: EXPECTED, resolved: 0, lost: 0, retried: 0 },
    });
    expect(vllm.asked).toHaveLength(EXPECTED);
  } finally {
    await vllm.stop();
  }
});

describe("two results", () => {
  const before = world.newRun();
  const after = world.newRun();
  const other = world.newRun();

  test("under one protocol are compared", async () => {
    for (const [run, solves] of [
      [before, ["0-0"]],
      [after, ["0-0", "0-1", "2-0", "2-1"]],
    ] as const) {
      const given = ["--protocol", world.protocol({ name: `by another name ${run}`.replaceAll(" ", "-") })];
      const done = await mortise("eval", ...given, ...world.measured(run, world.script(solves)));
      expect(done.code, done.stderr).toBe(0);
    }
    const { code, json, stderr } = await mortise("report", before, after, "--site", world.siteFile);
    expect(code, stderr).toBe(0);
    expect(json.comparison).toMatchObject({
      tasks: TASKS,
      points: 37.5,
      won: [{ task: world.entries[2]!.id }],
    });
  });

  test("under two are not, and what differs is said", async () => {
    const given = [
      "--protocol",
      world.protocol({
        attempts: 1,
        limits: { maxTurns: 9, agentTimeoutMs: 120_000, verifyTimeoutMs: 120_000 },
      }),
    ];
    const done = await mortise("eval", ...given, ...world.measured(other, world.script(["0-0"])));
    expect(done.code, done.stderr).toBe(0);
    const refused = await mortise("report", before, other, "--site", world.siteFile);
    expect(refused.code).not.toBe(0);
    expect(refused.json.error).toMatchObject({ code: "MORTISE_OPERATOR_PROTOCOLS", field: "attempts" });
    expect(refused.json.error.message).toContain("attempts: 2 | 1");
    expect(refused.json.error.message).toContain("limits.maxTurns: 4 | 9");
    const vary = ["--vary", "attempts", "--vary", "limits.maxTurns"];
    const meant = await mortise("report", before, other, "--site", world.siteFile, ...vary);
    expect(meant.json.comparison.varied).toMatchObject([{ field: "attempts" }, { field: "limits.maxTurns" }]);
  });
});

test("shown tests: who edits the copy to pass is unresolved, an honest repair beside it is resolved", async () => {
  const run = world.newRun();
  const forge = "cat > shown-tests/run.cjs <<'END'\nprocess.exit(0);\nEND\n";
  // The copy runs where it lies, and says that the repair is there.
  const check = `WORKSPACE="$PWD" sh shown-tests/test.sh < /dev/null > told; grep -q '"passed"' told && rm told\n`;
  const protocol = world.protocol({
    shownTests: "copy",
    prompt: { instruction: "{instruction} The tests are in {tests}." },
  });
  const script = world.script(
    ["1-0"],
    [
      { trial: "0-0", shell: `${forge}sh shown-tests/test.sh` },
      { trial: "0-1", shell: `${world.repair(0)}${check}${forge}` },
      { trial: "2-0", shell: "rm -r shown-tests" },
    ],
  );
  const { code, json, stderr } = await mortise(
    "eval",
    "--protocol",
    protocol,
    ...world.measured(run, script),
  );
  expect(code, stderr).toBe(0);
  expect(json.attempts).toMatchObject({ executed: EXPECTED, resolved: 2 });
  const rows = new Map(world.rows(run, "attempts.jsonl").map((row) => [row.trial, row]));
  const told = (trial: string) => {
    const { resolved, termination, shown_tests_changed: changed } = rows.get(`evaluation-${trial}`)!;
    return { resolved, termination, changed };
  };
  expect(told("0-0")).toEqual({ resolved: false, termination: "completed", changed: 1 });
  expect(told("0-1")).toEqual({ resolved: true, termination: "completed", changed: 1 });
  expect(told("1-0")).toEqual({ resolved: true, termination: "completed", changed: 0 });
  expect(told("2-0")).toEqual({ resolved: false, termination: "completed", changed: 4 });
});

describe("what cannot be measured", () => {
  const refused = async (args: readonly string[]) => {
    const run = world.newRun();
    const { code, json } = await mortise("eval", ...args, "--site", world.siteFile, "--run-id", run);
    return { code, error: json.error, hasResult: world.hasResult(run) };
  };
  const policy = () => ["--checkpoint", world.checkpoint, "--engine", world.script([])];

  test.each([
    ["--protocol", () => [...policy(), "--harness", "agent"]],
    [
      "maxTurn",
      () => [...policy(), "--harness", "agent", "--protocol", world.protocol({ limits: { maxTurn: 3 } })],
    ],
    [
      "harness.version",
      () => [...policy(), "--harness", "agent", "--protocol", world.protocol({ harness: { version: "2" } })],
    ],
    ["rollout.harness", () => [...policy(), "--harness", "another", "--protocol", world.protocol()]],
    [
      "--checkpoint",
      () => [
        "--checkpoint",
        "/nowhere",
        "--engine",
        world.script([]),
        "--harness",
        "agent",
        "--protocol",
        world.protocol(),
      ],
    ],
    [
      "--engine",
      () => [
        "--checkpoint",
        world.checkpoint,
        "--engine",
        "http://127.0.0.1:9",
        "--harness",
        "agent",
        "--protocol",
        world.protocol(),
      ],
    ],
    ["--split", () => [...policy(), "--harness", "agent", "--protocol", world.protocol(), "--split", "none"]],
    [
      "prompt.instruction",
      () => [
        ...policy(),
        "--harness",
        "agent",
        "--protocol",
        world.protocol({ prompt: { instruction: "{instruction} {tests}" } }),
      ],
    ],
  ])("is refused before anything runs, by %s", async (field, args) => {
    const { code, error, hasResult } = await refused(args());
    expect(error.field).toContain(field);
    expect({ code, hasResult }).toEqual({ code: 2, hasResult: false });
  });
});
