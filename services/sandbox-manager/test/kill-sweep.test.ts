/**
 * SIGKILL of a real manager with trials in every stage, on a real NATS server: nothing of them is left on the host, and
 * each is run again or reported lost, once. What the process held in memory is gone; only the streams know.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import Docker from "dockerode";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DockerBackend } from "../src/backend/docker/backend.js";
import { OWNER_LABEL } from "../src/backend/docker/engine.js";
import { ownerMark } from "../src/backend/owner.js";
import { RuncBackend } from "../src/backend/runc/backend.js";
import { ManagerWorld, RUN } from "./manager-world.js";
import { BROKEN, writeTask } from "./task-images.js";

const base = mkdtempSync(path.join(tmpdir(), "mortise-kill-"));
const available: ("runc" | "docker")[] = [];
for (const backend of [
  new RuncBackend({ stateDirectory: base, runc: "runc" }),
  new DockerBackend({ stateDirectory: base }),
]) {
  const { ok, ...why } = await backend.availability();
  if (ok) available.push(backend.name);
  else test.skip(`a manager that is killed, on ${backend.name}: ${JSON.stringify(why)}`, () => undefined);
}
afterAll(() => rmSync(base, { recursive: true, force: true }));

/** Longer than the queue waits for an acknowledgement: then work is delivered again. */
const REDELIVERY_MS = 60_000;
const SEED = Number(process.env.MORTISE_TEST_SEED ?? Math.floor(Math.random() * 1e9));

describe.each(available)("a manager that is killed, on %s", (backend) => {
  let world: ManagerWorld;
  const tasks = path.join(base, "tasks");
  const directory = path.join(base, backend);
  const state = path.join(directory, "state/sandbox-manager", backend);
  /** Of the manager's processes: nothing of theirs may stay there. */
  const temporary = path.join(base, `tmp-${backend}`);
  const diffs = path.join(directory, "state/sandbox-manager/diffs");
  const leftovers = () => leftBy(backend, state);
  const repository = { "environment/repository/src/add.cjs": BROKEN, "environment/Dockerfile": "FROM x\n" };
  const answer = { "solution/gold.patch": "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+nothing of this is there\n" };

  beforeAll(async () => {
    const sandbox = "maxConcurrentStarts = 1";
    mkdirSync(temporary, { recursive: true });
    const environment = { TMPDIR: temporary };
    world = await ManagerWorld.start({ directory, tasks, backend, sandbox, environment });
  });
  afterAll(() => world?.stop());

  const task = (id: string, toml = "") =>
    writeTask(tasks, id, `[environment]\nmemory_mb = 128\nstorage_mb = 64\n${toml}`, {
      ...repository,
      ...answer,
    });
  const endsOf = (trial: string) => world.reportsOf(trial).filter(({ fact }) => fact.case !== "prepared");
  /** Gives every prepared trial its slot, until all have ended. */
  async function finish(trials: readonly string[]): Promise<void> {
    const started = new Set<string>();
    await expect
      .poll(
        async () => {
          for (const { trial, lease, fact } of world.watched) {
            if (fact.case !== "prepared" || started.has(lease) || !trials.includes(trial)) continue;
            started.add(lease);
            // One that is lost already says so in its report.
            await world.client.startAgent({ run: RUN, trial, lease }).catch(() => undefined);
          }
          return trials.filter((trial) => endsOf(trial).length === 0);
        },
        { timeout: REDELIVERY_MS, interval: 100 },
      )
      .toEqual([]);
  }

  test("leaves nothing, and each of its trials is run again or lost, once, whatever its stage was", async () => {
    const plain = task("plain");
    const slow = task("slow", '[environment.healthcheck]\ncommand = "sleep 2"\n');
    world.model.reply = { hang: true };
    const warm = await world.launch({ task: plain });
    await world.report(warm, "prepared");
    const running = await world.started({ task: plain });
    await expect.poll(() => world.model.requests.length).toBe(1);
    const ending = await world.launch({ task: plain });
    const { lease } = await world.report(ending, "prepared");
    const setup = await world.launch({ task: slow });
    await expect.poll(async () => (await world.client.getSandboxStatus({})).preparing).toBe(1);
    const queued = await Promise.all([1, 2, 3].map(() => world.launch({ task: plain })));
    // Thousands of files: reading the change takes longer than it takes to kill.
    world.model.reply = { write: Object.fromEntries([...Array(3000).keys()].map((n) => [`f${n}`, "x"])) };
    await world.client.startAgent({ run: RUN, trial: ending, lease });
    await expect.poll(() => world.model.requests.length, { interval: 5 }).toBe(2);
    await world.killManager();
    expect(await leftovers()).not.toEqual([]);

    await world.startManager();
    expect(await leftovers()).toEqual([]);
    world.model.reply = {};
    const all = [warm, running.trial, ending, setup, ...queued];
    await finish(all);
    for (const trial of [warm, running.trial])
      expect(endsOf(trial)[0]?.fact).toMatchObject({
        case: "failed",
        value: { code: "MORTISE_SANDBOX_LOST" },
      });
    await settled(all);
  }, 180_000);

  test("while it applies a diff for grading leaves nothing of it either", async () => {
    const plain = task("plain");
    const textPatches = [...Array(400).keys()].map((n) => ({
      name: `${n}`,
      diff: Buffer.from(`--- /dev/null\n+++ b/f${n}\n@@ -0,0 +1 @@\n+x\n`),
    }));
    const steps = [{ name: "step", argv: ["true"] }];
    do {
      const grading = world.client.runOnce({ run: RUN, trial: "graded", task: plain, steps, textPatches });
      grading.catch(() => undefined);
      await expect.poll(() => readdirSync(diffs).length, { interval: 2 }).toBeGreaterThan(0);
      await world.killManager();
      // Between two diffs there is nothing to leave: then once more.
      if (readdirSync(diffs).length === 0) await world.startManager();
    } while (readdirSync(diffs).length === 0);
    await world.startManager();
    expect(readdirSync(diffs)).toEqual([]);
    expect(await leftovers()).toEqual([]);
    expect(readdirSync(temporary)).toEqual([]);
  }, 180_000);

  test("at any moment, again and again", async () => {
    const random = sequence(SEED);
    const plain = task("plain");
    const all: string[] = [];
    for (let round = 0; round < 5; round++) {
      world.model.reply = { write: Object.fromEntries([...Array(200).keys()].map((n) => [`f${n}`, "x"])) };
      const trials = await Promise.all([1, 2, 3].map(() => world.launch({ task: plain })));
      all.push(...trials);
      const killAfterMs = Math.round(random() * 1500);
      const over = new Promise((resolve) => setTimeout(resolve, killAfterMs));
      const starting = Promise.all(
        trials.map(async (trial) => {
          const { lease } = await world.report(trial, "prepared", "failed");
          await world.client.startAgent({ run: RUN, trial, lease }).catch(() => undefined);
        }),
      );
      starting.catch(() => undefined);
      await over;
      await world.killManager();
      await world.startManager();
      expect(await leftovers(), `seed ${SEED}, round ${round}, killed after ${killAfterMs} ms`).toEqual([]);
    }
    await finish(all);
    await settled(all);
  }, 240_000);

  /** Each has one end, nothing is queued, and after a drain nothing is left either. */
  async function settled(trials: readonly string[]): Promise<void> {
    await expect.poll(() => world.queued(), { timeout: REDELIVERY_MS }).toBe(0);
    for (const trial of trials) expect([trial, endsOf(trial).length]).toEqual([trial, 1]);
    await expect.poll(leftovers).toEqual([]);
    expect(readdirSync(path.join(directory, "state/sandbox-manager/leases"))).toEqual([]);
    expect(readdirSync(diffs)).toEqual([]);
    expect(readdirSync(temporary)).toEqual([]);
  }
});

async function leftBy(backend: "runc" | "docker", state: string): Promise<string[]> {
  return backend === "runc" ? onHost(state) : inEngine(state);
}

/** Containers and images of the engine, and directories on the host. */
async function inEngine(state: string): Promise<string[]> {
  const docker = new Docker();
  const filters = { label: [`${OWNER_LABEL}=${ownerMark(state)}`] };
  const containers = await docker.listContainers({ all: true, filters });
  const images = await docker.listImages({ filters });
  const directories = readdirSync(path.join(state, "run"));
  return [...containers.map(({ Id }) => Id), ...images.map(({ Id }) => Id), ...directories];
}

/** Mounts, control groups, processes and directories of sandboxes; the manager's own mount is none of them. */
function onHost(state: string): string[] {
  const run = path.join(state, "run");
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((point) => point.startsWith(`${run}/`));
  const directories = readdirSync(run).map((name) => path.join(run, name));
  return [...mounts, ...directories, ...controlGroupsOf(state), ...processesOf(state)];
}

function controlGroupsOf(state: string): string[] {
  const roots = ["/sys/fs/cgroup", ...readdirSync("/sys/fs/cgroup").map((name) => `/sys/fs/cgroup/${name}`)];
  return roots
    .map((root) => path.join(root, "mortise", ownerMark(state)))
    .filter((group) => existsSync(group))
    .flatMap((group) =>
      readdirSync(group, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => path.join(group, name)),
    );
}

function processesOf(state: string): string[] {
  const mark = `/mortise/${ownerMark(state)}`;
  return readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(mark);
      } catch {
        return false;
      }
    })
    .map((pid) => `process ${pid}`);
}

/** Numbers from 0 to 1 that a seed fixes (a linear congruence; the constants are Knuth's and Lewis'). */
function sequence(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}
