/**
 * Jest, Vitest and Mocha graded for real: a repair is resolved, with channel and altered tests; nothing is not; and
 * changes that would rather look repaired than be it are caught, each beside the repair.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Outcome } from "@mortise/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodeImage } from "../node-image.js";
import type { Change } from "../patch-bytes.js";
import { type WrittenTask, writePythonTask } from "../python-task.js";
import { CJS, NODE_PROJECTS, nodeProject, READS_ANSWERS } from "../runner-projects.js";
import { absentFor, VerificationWorld } from "../verification-world.js";

const image = nodeImage();
const absent = absentFor(image);
if (absent !== undefined) console.log(`test runners of JavaScript skipped: ${absent}`);

const { RESOLVED, UNRESOLVED, INVALID_TAMPER } = Outcome;
const PATIENCE_MS = 600_000;

describe.skipIf(absent !== undefined)("test runners of JavaScript", () => {
  const base = mkdtempSync(path.join(tmpdir(), "mortise-node-runners-"));
  const tasks = path.join(base, "tasks");
  const written = new Map<string, WrittenTask>();
  let world: VerificationWorld;

  beforeAll(async () => {
    if ("missing" in image) return;
    for (const one of NODE_PROJECTS)
      written.set(one.name, await writePythonTask(tasks, `own__${one.name}-1`, nodeProject(one), image));
    world = await VerificationWorld.start(base, tasks);
  }, 600_000);
  afterAll(async () => {
    await world?.stop();
    rmSync(base, { recursive: true, force: true });
  });

  describe.each(NODE_PROJECTS)("$name", (one) => {
    const grade = (change?: Change) => world.grade(written.get(one.name)!, change);
    const ended = async (change: Change | undefined, outcome: Outcome) => {
      const verdict = await grade(change);
      expect(verdict.outcome, `${verdict.reason}\n${await world.logOf(verdict)}`).toBe(outcome);
      return verdict;
    };

    test(
      "the repair is resolved: log, channel and altered tests agree",
      async () => {
        const verdict = await ended({ [one.code]: CJS.good }, RESOLVED);
        expect(verdict.findings).toEqual([]);
      },
      PATIENCE_MS,
    );

    test(
      "nothing is unresolved",
      async () => {
        await ended(undefined, UNRESOLVED);
      },
      PATIENCE_MS,
    );

    test(
      "the process ends with 0 when the code is loaded",
      async () => {
        const verdict = await grade({ [one.code]: `process.reallyExit(0);\n${CJS.bad}` });
        expect([UNRESOLVED, INVALID_TAMPER]).toContain(verdict.outcome);
      },
      PATIENCE_MS,
    );

    test(
      "a passing log is printed and the process ends with 0",
      async () => {
        const passes = [one.passToPass, one.failToPass].map((name) => name.split(" > ").at(-1));
        const lines =
          one.name === "vitest"
            ? [one.passToPass, one.failToPass].map((name) => ` ✓ ${name} 1ms`).join("\n")
            : one.name === "mocha"
              ? `  calc\n${passes.map((name) => `    ✔ ${name}`).join("\n")}\n\n  2 passing (3ms)`
              : passes.map((name) => `  ✓ ${name} (1 ms)`).join("\n");
        const code = `require("fs").writeSync(1, ${JSON.stringify(`\n${lines}\n`)});\nprocess.reallyExit(0);\n`;
        const verdict = await grade({ [one.code]: code + CJS.bad });
        // Where the code runs in a process of its own, its output may be lost with it.
        expect([UNRESOLVED, INVALID_TAMPER]).toContain(verdict.outcome);
        expect(verdict.reward ?? 0).toBe(0);
      },
      PATIENCE_MS,
    );

    test(
      "results are written on every descriptor, with a nonce that was guessed",
      async () => {
        const record = JSON.stringify({ nonce: "0", seq: 1, nodeid: "x", phase: "call", outcome: "passed" });
        const code = `const fs = require("fs");\nfor (let fd = 3; fd < 128; fd++) {\n  try {\n    fs.writeSync(fd, ${JSON.stringify(`${record}\n`)});\n  } catch {}\n}\n`;
        const verdict = await grade({ [one.code]: code + CJS.bad });
        // A worker may not have the descriptor at all.
        expect([UNRESOLVED, INVALID_TAMPER]).toContain(verdict.outcome);
      },
      PATIENCE_MS,
    );

    test(
      "the runner or its assertions are patched so that nothing fails",
      async () => {
        const verdict = await grade({ [one.code]: one.patched + CJS.bad });
        expect([verdict.reason, verdict.outcome]).toEqual([verdict.reason, INVALID_TAMPER]);
      },
      PATIENCE_MS,
    );

    test(
      "the answers are read out of the tests",
      async () => {
        const verdict = await ended({ [one.code]: READS_ANSWERS }, INVALID_TAMPER);
        expect(verdict).toMatchObject({ conclusive: true });
        expect(verdict.findings.map(({ subject }) => subject)).toContain("altered-test-passed");
      },
      PATIENCE_MS,
    );

    test(
      "configuration of the runner is left out, beside a repair or without one",
      async () => {
        const broken = await ended(one.config, UNRESOLVED);
        expect(broken.stripped.map(({ subject }) => subject)).toEqual(Object.keys(one.config));
        await ended({ ...one.config, [one.code]: CJS.good }, RESOLVED);
      },
      PATIENCE_MS,
    );
  });
});
