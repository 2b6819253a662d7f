/** `mortise verify` on bundled tasks: a diff and predictions, in sandboxes of its own, with evidence. Uses dist. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RuncBackend } from "@mortise/sandbox-manager";
import { generateDemoTasks, listTaskIds, loadTask } from "@mortise/tasks";
import { decodeEvidence, judgeRun } from "@mortise/verifier";
import { afterAll, expect, test } from "vitest";

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const PATIENCE_MS = 600_000;

const base = mkdtempSync(join(tmpdir(), "mortise-verify-command-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));
const runc = await new RuncBackend({ stateDirectory: base, runc: "runc" }).availability();

/** What a task's own solution changes, as git says it. */
function diffOf(task: string): string {
  const work = mkdtempSync(join(base, "work-"));
  for (const side of ["a", "b"])
    cpSync(join(task, "environment/repository"), join(work, side), { recursive: true });
  execFileSync("sh", [join(task, "solution/solve.sh")], { cwd: join(work, "b") });
  return spawnSync("git", ["diff", "--no-index", "--no-prefix", "a", "b"], { cwd: work, encoding: "utf8" })
    .stdout;
}

function verify(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, "verify", ...args, "--json"], {
    encoding: "utf8",
  });
  return { status, stderr, answer: JSON.parse(stdout.trim().split("\n").at(-1)!) };
}

test.skipIf(!runc.ok)(
  `a diff and predictions are verified, and what is kept can be judged again${runc.ok ? "" : ` (absent: ${runc.reason})`}`,
  { timeout: PATIENCE_MS },
  () => {
    const tasks = join(base, "tasks");
    generateDemoTasks(tasks, { seed: 1, train: 1, heldOut: 1 });
    const [first, second] = listTaskIds(tasks) as [string, string];
    const [good, other] = [first, second].map((id) => diffOf(join(tasks, id))) as [string, string];
    writeFileSync(join(base, "good.diff"), good);
    mkdirSync(join(base, "out"));
    const one = verify(join(tasks, first), "--patch", join(base, "good.diff"), "--out", join(base, "out"));
    expect(one.status, one.stderr).toBe(0);
    expect(one.answer).toMatchObject({
      schema: 1,
      submitted: 1,
      resolved: 1,
      verdicts: [{ instance: first, verdict: "resolved", applied: "apply" }],
    });
    const { evidence } = one.answer.verdicts[0];
    const record = decodeEvidence(readFileSync(join(evidence, "evidence.gz")));
    expect(judgeRun(loadTask(join(tasks, first)), record)).toMatchObject({ outcome: "resolved", reward: 1 });
    const rows = [
      { instance_id: first, model_name_or_path: "m", model_patch: "" },
      { instance_id: second, model_name_or_path: "m", model_patch: other },
      { instance_id: second, model_name_or_path: "stale", model_patch: "@@ no diff" },
    ];
    writeFileSync(join(base, "rows.json"), JSON.stringify(rows));
    const many = verify(tasks, "--predictions", join(base, "rows.json"));
    expect(many.answer).toMatchObject({
      submitted: 3,
      resolved: 1,
      unresolved: 1,
      empty: [first],
      verdicts: [
        { task: second, verdict: "resolved" },
        { model: "stale", verdict: "unresolved" },
      ],
    });
  },
);

test("what cannot be verified is the operator's, before anything is started", {
  timeout: PATIENCE_MS,
}, () => {
  const { status, answer } = verify(base);
  expect(status).toBe(2);
  expect(answer.error).toMatchObject({ code: "MORTISE_OPERATOR_USAGE", field: "tasks" });
});
