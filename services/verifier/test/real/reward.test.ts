/** Harbor verifiers run as they are: what they leave as a reward, and what becomes of it. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Outcome } from "@mortise/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pythonImage } from "../python-image.js";
import { CALC, type WrittenTask, writeRewardTask } from "../python-task.js";
import { absentFor, VerificationWorld } from "../verification-world.js";

const image = pythonImage();
const absent = absentFor(image);
if (absent !== undefined) console.log(`real Harbor verifiers skipped: ${absent}`);

const V = "/logs/verifier";
const HONEST = `#!/bin/bash
if python3 -c 'from calc import add; assert add(1, 2) == 3'; then echo 1 > ${V}/reward.txt; else echo 0 > ${V}/reward.txt; fi
`;
const { RESOLVED, UNRESOLVED, INVALID_INFRA, INVALID_TASK, INVALID_TAMPER } = Outcome;

/** What the script does, how it is judged, and what the reason says. */
const SCRIPTS: readonly (readonly [string, string, Outcome, number | undefined, RegExp])[] = [
  ["writes 1", `echo 1 > ${V}/reward.txt`, RESOLVED, 1, /gave 1/],
  ["writes 1 and fails", `echo 1 > ${V}/reward.txt; exit 7`, RESOLVED, 1, /gave 1/],
  ["writes 0", `echo 0 > ${V}/reward.txt`, UNRESOLVED, 0, /gave 0/],
  ["writes part of a reward", `echo 0.25 > ${V}/reward.txt`, UNRESOLVED, 0.25, /gave 0.25/],
  ["writes a number as JSON", `echo 1.0 > ${V}/reward.json`, RESOLVED, 1, /gave 1/],
  ["writes one key", `echo '{"score": 0.5}' > ${V}/reward.json`, UNRESOLVED, 0.5, /gave 0.5/],
  ["writes several keys", `echo '{"reward": 1, "style": 0.3}' > ${V}/reward.json`, RESOLVED, 1, /gave 1/],
  [
    "writes several keys and no reward",
    `echo '{"a": 1, "b": 0}' > ${V}/reward.json`,
    INVALID_TASK,
    undefined,
    /none is "reward"/,
  ],
  [
    "writes both files alike",
    `echo 1 > ${V}/reward.txt; echo '{"reward": 1}' > ${V}/reward.json`,
    RESOLVED,
    1,
    /gave 1/,
  ],
  [
    "writes both files differently",
    `echo 0 > ${V}/reward.txt; echo '{"reward": 1}' > ${V}/reward.json`,
    INVALID_TAMPER,
    undefined,
    /reward.json says 1, reward.txt 0/,
  ],
  ["writes nothing", "exit 0", INVALID_INFRA, undefined, /wrote no reward; exit code 0/],
  ["writes an empty file", `: > ${V}/reward.txt`, INVALID_INFRA, undefined, /is empty/],
  ["writes no number", `echo passed > ${V}/reward.txt`, INVALID_INFRA, undefined, /is no number/],
  ["writes NaN", `echo nan > ${V}/reward.txt`, INVALID_INFRA, undefined, /is no number/],
  ["writes infinity", `echo 1e999 > ${V}/reward.txt`, INVALID_INFRA, undefined, /no finite number/],
  ["writes NaN as JSON", `echo '{"reward": NaN}' > ${V}/reward.json`, INVALID_INFRA, undefined, /is no JSON/],
  [
    "writes text as JSON",
    `echo '{"reward": "1"}' > ${V}/reward.json`,
    INVALID_INFRA,
    undefined,
    /object of numbers/,
  ],
  ["writes more than 1", `echo 1000000000 > ${V}/reward.txt`, INVALID_TASK, undefined, /outside 0 to 1/],
  [
    "writes less than 0",
    `echo -- -1 > /dev/null; printf '%s' -1 > ${V}/reward.txt`,
    INVALID_TASK,
    undefined,
    /outside 0 to 1/,
  ],
  [
    "writes two megabytes",
    `head -c 2097152 /dev/zero > ${V}/reward.txt`,
    INVALID_INFRA,
    undefined,
    /2097152 bytes/,
  ],
  [
    "makes the reward a link",
    `echo 1 > /tmp/r; ln -s /tmp/r ${V}/reward.txt`,
    INVALID_INFRA,
    undefined,
    /symbolic link/,
  ],
  [
    "makes the directory a link",
    `mv ${V} /tmp/v; ln -s /tmp/v ${V}; echo 1 > ${V}/reward.txt`,
    INVALID_INFRA,
    undefined,
    /link leads there/,
  ],
  [
    "makes the reward a hard link",
    `echo 1 > ${V}/r; ln ${V}/r ${V}/reward.txt`,
    INVALID_INFRA,
    undefined,
    /hard link/,
  ],
  [
    "lacks a program",
    `uv run x.py && echo 1 > ${V}/reward.txt || echo 0 > ${V}/reward.txt`,
    INVALID_INFRA,
    undefined,
    /uv: command not found/,
  ],
  [
    "needs the network",
    `echo 'curl: (6) Could not resolve host: astral.sh' >&2; echo 0 > ${V}/reward.txt`,
    INVALID_INFRA,
    undefined,
    /resolve host/,
  ],
  [
    "has its reward written over after its end",
    `(while :; do echo 1 > ${V}/reward.txt; done) & sleep 0.2; echo 0 > ${V}/reward.txt`,
    INVALID_TAMPER,
    undefined,
    /written again after/,
  ],
  ["leaves a process that does nothing", `sleep 60 & echo 1 > ${V}/reward.txt`, RESOLVED, 1, /gave 1/],
  ["never ends", `echo 1 > ${V}/reward.txt; sleep 600`, UNRESOLVED, 0, /time limit/],
];

describe.skipIf(absent !== undefined)("a Harbor verifier", () => {
  const base = mkdtempSync(path.join(tmpdir(), "mortise-reward-"));
  const tasks = path.join(base, "tasks");
  mkdirSync(tasks);
  let world: VerificationWorld;
  let serial = 0;

  beforeAll(async () => {
    if ("missing" in image) return;
    world = await VerificationWorld.start(base, tasks);
  }, 300_000);
  afterAll(async () => {
    await world?.stop();
    rmSync(base, { recursive: true, force: true });
  });

  const task = (script: string): WrittenTask => {
    if ("missing" in image) throw new Error(image.missing);
    return writeRewardTask(tasks, `reward-${++serial}`, script, image);
  };

  test.each(SCRIPTS)(
    "that %s",
    async (_, body, outcome, reward, reason) => {
      const verdict = await world.grade(task(`#!/bin/bash\n${body}\n`), undefined, 8_000);
      expect([verdict.reason, verdict.outcome, verdict.reward]).toEqual([verdict.reason, outcome, reward]);
      expect(verdict.reason).toMatch(reason);
    },
    600_000,
  );

  test("a repair is resolved, a change that plants rewards and loops is not", async () => {
    const honest = task(HONEST);
    const repaired = await world.grade(honest, CALC.repaired);
    expect(repaired).toMatchObject({ outcome: RESOLVED, reward: 1, grader: "harbor-reward/2" });
    const planted = await world.grade(honest, {
      "logs/verifier/reward.txt": "1\n",
      "reward.txt": "1\n",
      "reward.json": '{"reward": 1}\n',
    });
    expect(planted).toMatchObject({ outcome: UNRESOLVED, reward: 0 });
    const loop = `import os\nif os.fork() == 0:\n    os.setsid()\n    while True:\n        open("${V}/reward.txt", "w").write("1")\n`;
    const looping = await world.grade(honest, { "calc/__init__.py": loop + CALC.files["calc/__init__.py"] });
    expect(looping).toMatchObject({ outcome: INVALID_TAMPER, conclusive: true });
  }, 600_000);

  test.each([
    ["a directory", `os.mkdir("${V}/reward.txt")`],
    ["a link that leads nowhere", `os.symlink("/nowhere/x", "${V}/reward.txt")`],
    ["another directory", `os.rename("${V}", "/tmp/away")`],
  ])(
    "a change that puts %s in the reward's way is tampering",
    async (_, code) => {
      const change = { "calc/__init__.py": `import os\n${code}\n${CALC.files["calc/__init__.py"]}` };
      const verdict = await world.grade(task(HONEST), change);
      expect([verdict.reason, verdict.outcome]).toEqual([verdict.reason, INVALID_TAMPER]);
      expect(verdict.reason).toContain("keeps the verifier from writing");
    },
    600_000,
  );

  test("every key is a component of the reward", async () => {
    const verdict = await world.grade(task(`echo '{"reward": 0.5, "style": 0.25}' > ${V}/reward.json`));
    expect(verdict.components.map(({ name, value }) => [name, value])).toEqual([
      ["reward", 0.5],
      ["style", 0.25],
    ]);
  }, 600_000);

  test("the directory is there, empty, and the script has no input and no network", async () => {
    const script = `#!/usr/bin/env bash
read -r line && exit 1
[ -z "$(ls -A ${V})" ] || exit 1
[ -e /tests/test.sh ] && [ -w ${V} ] || exit 1
python3 - <<'END' && echo 1 > ${V}/reward.txt
import socket
try:
    socket.create_connection(("192.0.2.1", 80), 1)
except OSError:
    raise SystemExit(0)
raise SystemExit(1)
END
`;
    expect(await world.grade(task(script))).toMatchObject({ outcome: RESOLVED, findings: [] });
  }, 600_000);
});
