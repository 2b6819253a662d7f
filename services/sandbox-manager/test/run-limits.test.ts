/** A run's limits and multipliers at a real manager: in the agent's sandbox and in the one its tests run in. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { RunOnceRequest } from "@mortise/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ownerMark } from "../src/backend/owner.js";
import { RuncBackend } from "../src/backend/runc/backend.js";
import { ManagerWorld, RUN } from "./manager-world.js";
import { BROKEN, writeTask } from "./task-images.js";

const base = mkdtempSync(path.join(tmpdir(), "mortise-limits-"));
const runc = await new RuncBackend({ stateDirectory: base, runc: "runc" }).availability();
if (!runc.ok) console.log(`limits of runs are not tried: ${runc.reason}`);
afterAll(() => rmSync(base, { recursive: true, force: true }));

/** Holds so many megabytes, then says so. */
const HOLD = `const held = []; for (let n = 0; n < MB / 4; n++) held.push(Buffer.alloc(4e6, 1)); console.log("held");`;

describe.skipIf(!runc.ok)("limits of a run", () => {
  let world: ManagerWorld;
  const tasks = path.join(base, "tasks");
  mkdirSync(tasks, { recursive: true });
  const taskWith = (id: string, toml: string) =>
    writeTask(tasks, id, `[environment]\n${toml}\n`, {
      "environment/repository/src/add.cjs": BROKEN,
      "environment/Dockerfile": "FROM x\n",
      "solution/gold.patch": "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+nothing of this is there\n",
    });

  beforeAll(async () => {
    const sandbox = "cpus = 2\nmemoryBytes = 1073741824";
    world = await ManagerWorld.start({ directory: path.join(base, "site"), tasks, backend: "runc", sandbox });
  });
  afterAll(() => world?.stop());

  test("multiply the memory of the sandbox that tests run in, as the agent's", async () => {
    const task = taskWith("modest", "memory_mb = 96\nstorage_mb = 32");
    const held = async (request: Partial<RunOnceRequest>, mb: number) => {
      const argv = ["node", "-e", HOLD.replace("MB", String(mb))];
      const answer = await world.client.runOnce({ run: RUN, trial: "v", task, argv, ...request } as never);
      expect(answer.failureReason).toBe("");
      return answer.outOfMemory ? "out of memory" : Buffer.from(answer.stdout).toString().trim();
    };
    // Grading has twice the memory of the agent's sandbox.
    expect(await held({}, 280)).toBe("out of memory");
    expect(await held({ overrides: { memoryMultiplier: 3 } as never }, 280)).toBe("held");
    expect(await held({ limits: { memoryBytes: 268_435_456n } as never }, 280)).toBe("held");
    expect(await held({ overrides: { memoryMultiplier: 0.5 } as never }, 120)).toBe("out of memory");
  }, 60_000);

  test("multiply its cpu time too", async () => {
    const task = taskWith("busy", "memory_mb = 128\nstorage_mb = 32\ncpus = 2");
    const given = async (overrides: object) => {
      const steps = [{ name: "wait", argv: ["sleep", "60"], timeoutMs: 60_000 }];
      const stop = new AbortController();
      const running = world.client.runOnce(
        { run: RUN, trial: "v", task, steps, overrides },
        { signal: stop.signal },
      );
      running.catch(() => undefined);
      await expect.poll(() => cpusOfRun()).toBeDefined();
      const cpus = cpusOfRun();
      stop.abort();
      await expect.poll(() => cpusOfRun()).toBeUndefined();
      return cpus;
    };
    expect(await given({})).toBe(2);
    expect(await given({ cpusMultiplier: 0.1 })).toBe(0.2);
  }, 60_000);

  /** What the kernel gives the one verification that runs; undefined while none does. */
  function cpusOfRun(): number | undefined {
    const below = path.join("mortise", ownerMark(path.join(base, "site/state/sandbox-manager/runc")));
    const roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
    for (const group of roots.map((root) => path.join(root, below)).filter((place) => existsSync(place))) {
      const name = readdirSync(group).find((one) => one.startsWith("once-"));
      const read = (file: string) => readFileSync(path.join(group, name!, file), "utf8").trim();
      if (name === undefined) continue;
      if (existsSync(path.join(group, name, "cpu.max"))) {
        const [quota, period] = read("cpu.max").split(" ");
        return Number(quota) / Number(period);
      }
      if (existsSync(path.join(group, name, "cpu.cfs_quota_us")))
        return Number(read("cpu.cfs_quota_us")) / Number(read("cpu.cfs_period_us"));
    }
    return undefined;
  }

  test.each([
    [
      "memory_mb = 1",
      "environment.memory_mb gives a sandbox 1048576 memoryBytes; nothing starts with less than 16777216",
    ],
    ["cpus = 0.001", "environment.cpus gives a sandbox 0.001 cpus; nothing starts with less than 0.01"],
  ])("that are too small to start anything in are the task's fault: %s", async (toml, words) => {
    const task = taskWith(`small-${toml.slice(0, 4)}`, toml);
    const { fact } = await world.report(await world.launch({ task }), "failed", "prepared");
    expect(fact.value).toMatchObject({
      code: "MORTISE_TASK_INVALID",
      reason: expect.stringContaining(words),
    });
    const graded = await world.client.runOnce({ run: RUN, trial: "v", task, argv: ["true"] });
    expect(graded).toMatchObject({
      failureCode: "MORTISE_TASK_INVALID",
      failureReason: expect.stringContaining(words.replace(" 1048576 ", " 2097152 ")),
    });
  });

  test("start a command in the least there may be", async () => {
    const least = "memory_mb = 16\nstorage_mb = 1\ncpus = 0.01";
    const task = taskWith("least", least);
    const { fact } = await world.report(await world.launch({ task }), "failed", "prepared");
    expect(fact.case).toBe("prepared");
    const answer = await world.client.runOnce({ run: RUN, trial: "v", task, argv: ["echo", "up"] });
    expect([answer.failureReason, Buffer.from(answer.stdout).toString()]).toEqual(["", "up\n"]);
  }, 60_000);
});
