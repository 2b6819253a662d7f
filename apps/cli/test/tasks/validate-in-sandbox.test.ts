/** `mortise tasks validate` on bundled tasks: sandboxes of its own, and nothing left of them. Uses dist. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RuncBackend } from "@mortise/sandbox-manager";
import { generateDemoTasks, listTaskIds } from "@mortise/tasks";
import { afterAll, expect, test } from "vitest";

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const PATIENCE_MS = 180_000;

const base = mkdtempSync(join(tmpdir(), "mortise-validate-sandbox-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));
const runc = await new RuncBackend({ stateDirectory: base, runc: "runc" }).availability();

test.skipIf(!runc.ok)(
  `tasks are validated in sandboxes that are gone afterwards${runc.ok ? "" : ` (absent: ${runc.reason})`}`,
  { timeout: PATIENCE_MS },
  () => {
    const tasks = join(base, "tasks");
    generateDemoTasks(tasks, { seed: 1, train: 1, heldOut: 1 });
    const [good, bad] = listTaskIds(tasks) as [string, string];
    writeFileSync(join(tasks, bad, "solution/solve.sh"), "exit 0\n");
    const own = mkdtempSync(join(base, "tmp-"));
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [MAIN, "tasks", "validate", tasks, "--gold", "1", "--json"],
      { encoding: "utf8", env: { ...process.env, TMPDIR: own } },
    );
    expect(status, stderr).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      validated: 2,
      invalid: 1,
      egressFree: 1,
      tasks: expect.arrayContaining([
        expect.objectContaining({ id: good, isValid: true, isEgressFree: true }),
        expect.objectContaining({ id: bad, isValid: false }),
      ]),
    });
    expect(JSON.parse(readFileSync(join(tasks, "validation", `${good}.json`), "utf8")).executor).toBe(
      "verifier (runc)",
    );
    expect(readdirSync(own)).toEqual([]);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(own);
  },
);

test.skipIf(!runc.ok)(
  "an interrupt ends the sandboxes, and keeps nothing of what did not end",
  { timeout: PATIENCE_MS },
  async () => {
    const tasks = join(base, "interrupted");
    generateDemoTasks(tasks, { seed: 1, train: 2, heldOut: 1 });
    const own = mkdtempSync(join(base, "tmp-"));
    const child = spawn(process.execPath, [MAIN, "tasks", "validate", tasks, "--gold", "50", "--jobs", "1"], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, TMPDIR: own },
    });
    const ended = once(child, "exit");
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (!said.includes("sandbox backend") && `${said}${text}`.includes("sandbox backend"))
        child.kill("SIGINT");
      said += text;
    });
    expect(await ended, said).toEqual([128 + constants.signals.SIGINT, null]);
    expect(readdirSync(own)).toEqual([]);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(own);
    expect(existsSync(join(tasks, "validation"))).toBe(false);
  },
);
