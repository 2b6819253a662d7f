/** `mortise tasks validate --in process` on bundled tasks: figures, what is kept, the quarantine list. Uses dist. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { canCloseNetwork, generateDemoTasks, listTaskIds } from "@mortise/tasks";
import { afterEach, beforeEach, expect, test } from "vitest";

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

let directory: string;
let ids: string[];
beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), "mortise-validate-command-")), "tasks");
  generateDemoTasks(directory, { seed: 1, train: 2, heldOut: 1 });
  ids = listTaskIds(directory);
});
afterEach(() => rmSync(join(directory, ".."), { recursive: true, force: true }));

function validate(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [MAIN, "tasks", "validate", "--in", "process", ...args],
    {
      encoding: "utf8",
    },
  );
  return { status, stdout, stderr };
}

const answer = (stdout: string) => JSON.parse(stdout.trim().split("\n").at(-1)!);

test("valid tasks are kept as such, and only those that change are run again", () => {
  const first = validate(directory, "--json", "--gold", "2");
  expect(first.status).toBe(0);
  expect(answer(first.stdout)).toMatchObject({
    schema: 1,
    validated: 3,
    kept: 0,
    invalid: 0,
    flaky: 0,
    egressFree: canCloseNetwork() ? 3 : 0,
    quarantined: 0,
    tasks: ids.map((id) => ({ id, isValid: true, gold: { resolved: 2, attempts: 2 } })),
  });
  writeFileSync(join(directory, ids[1]!, "solution/solve.sh"), "exit 0\n");
  const second = validate(directory, "--gold", "2");
  expect(second.status).toBe(2);
  expect(second.stdout).toContain(`${ids[1]}: gold attempt 2 is unresolved (`);
  expect(second.stdout).toContain("\n3 tasks validated (2 before), 1 invalid\n");
  expect(readFileSync(join(directory, "quarantine.txt"), "utf8")).toMatch(
    new RegExp(`^${ids[1]} # gold attempt 1 is unresolved \\(.*\\)\\.\n$`),
  );
  expect(answer(validate(directory, "--json", "--limit", "1").stdout)).toMatchObject({
    validated: 1,
    kept: 0,
  });
});

test("of a single task nothing is kept beside it", () => {
  const { status, stdout } = validate(join(directory, ids[0]!), "--gold", "1", "--network", "host", "--json");
  expect(status).toBe(0);
  expect(answer(stdout)).toMatchObject({ validated: 1, egressFree: 0, tasks: [{ id: ids[0] }] });
  expect(existsSync(join(directory, "validation"))).toBe(false);
});
