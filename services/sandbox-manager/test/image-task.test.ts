/** Tasks that bring an image, at a real manager: sealed once, forked for each trial, closed, graded, kept. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of task files
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Content, KeepPolicy, type SandboxReport, Stage, TerminationReason } from "@mortise/contracts";
import Docker from "dockerode";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { DockerBackend } from "../src/backend/docker/backend.js";
import { OWNER_LABEL } from "../src/backend/docker/engine.js";
import { ownerMark } from "../src/backend/owner.js";
import { RuncBackend } from "../src/backend/runc/backend.js";
import { builtImages, removeBuiltImage } from "../src/images/build/built-image.js";
import { decodePatch } from "../src/patch/codec.js";
import { inlineOf, ManagerWorld, RUN } from "./manager-world.js";
import { BROKEN, layoutHolds, layoutWithRepository, REPAIRED, writeTask } from "./task-images.js";

const base = mkdtempSync(path.join(tmpdir(), "mortise-image-task-"));
const available: ("runc" | "docker")[] = [];
for (const backend of [
  new RuncBackend({ stateDirectory: base, runc: "runc" }),
  new DockerBackend({ stateDirectory: base }),
]) {
  const { ok, ...why } = await backend.availability();
  if (ok) available.push(backend.name);
  else test.skip(`tasks in images on ${backend.name}: ${JSON.stringify(why)}`, () => undefined);
}
afterAll(() => rmSync(base, { recursive: true, force: true }));

async function removeBuilt(stateDirectory: string): Promise<void> {
  const docker = new Docker();
  for (const built of await builtImages(docker, ownerMark(stateDirectory)))
    await removeBuiltImage(docker, built);
}

describe.each(available)("tasks in images on %s", (backend) => {
  let world: ManagerWorld;
  let image: string;
  const tasks = path.join(base, `tasks-${backend}`);
  const directory = path.join(base, backend);
  mkdirSync(tasks, { recursive: true });

  const toml = (more = "", top = "") => `schema_version = "1.4"
${top}
[environment]
docker_image = "oci:${image}"
memory_mb = 256
storage_mb = 32
${more}
`;

  beforeAll(async () => {
    image = layoutWithRepository(path.join(base, `build-${backend}`));
    world = await ManagerWorld.start({
      directory,
      tasks,
      backend,
      sandbox: `taskVariables = ["HOST_SETTING"]\nshared = { data = "${path.join(base, "shared")}" }\nmaxKept = 2`,
      environment: { HOST_SETTING: "a-secret-of-the-host" },
    });
  }, 120_000);
  afterEach(() => world.model.reset());
  afterAll(() => world?.stop());

  async function stored(content: Content | undefined): Promise<{ [key: string]: never }> {
    if (content?.place.case === "object")
      return JSON.parse(
        Buffer.from((await (await world.bus.objects("blobs")).get(content.place.value))!).toString(),
      );
    return JSON.parse(Buffer.from(inlineOf(content)).toString());
  }

  const failure = async (task: { id: string; digest: string }, changes: Record<string, unknown> = {}) => {
    const trial = await world.launch({ task, ...changes });
    const { fact } = await world.report(trial, "failed", "prepared");
    return fact.case === "failed" ? `${fact.value.code}: ${fact.value.reason}` : "it was prepared";
  };

  test("the agent finds the work tree without its history, changes it, and the change is graded", async () => {
    expect(layoutHolds(image, "refs/heads/later")).toBe(true);
    const task = writeTask(tasks, "inside", toml());
    world.model.reply = { write: { "src/add.cjs": REPAIRED } };
    const { trial } = await world.started({ task, setupTimeoutMs: 120_000 });
    const end = await world.ended(trial);
    expect(end).toMatchObject({ termination: TerminationReason.COMPLETED, patchEntries: 1 });
    const { body } = world.model.requests[0]!;
    expect(body).toMatchObject({ cwd: "/testbed", uid: 0, setting: "of-the-image", hasTests: false });
    expect(body.files).toContain("src/add.cjs");
    expect(body.files).toContain(".git/HEAD");
    expect(body.files).not.toContain(".git/refs/heads/later");
    const patch = await decodePatch(inlineOf(end.patch));
    expect(patch.entries.map(({ path: file }) => file)).toEqual(["src/add.cjs"]);
    const grade = (request: object) => world.grade({ trial, task, ...request });
    expect(await grade({ patch: end.patch! })).toBe("passed");
    expect(await grade({ withSolution: true })).toBe("passed");
    expect(await grade({})).toBe("failed");
  }, 180_000);

  test("one template serves the group; its seal and each sandbox's network are in the record", async () => {
    const task = writeTask(tasks, "inside", toml());
    const reports: SandboxReport[] = [];
    for (const _ of [1, 2]) {
      const { trial } = await world.started({ task });
      await world.ended(trial);
      reports.push(await world.report(trial, "ended"));
    }
    const [first, second] = reports.map(({ proof }) => proof!);
    expect(first!.seal?.sha256).toBe(second!.seal?.sha256);
    expect(await stored(first!.seal)).toMatchObject({
      format: "mortise-seal/1",
      history: { state: "hidden" },
      search: { isClean: true, nHits: 0 },
    });
    expect(await stored(second!.network)).toMatchObject({ isClosed: true });
    expect(first).toMatchObject({
      reachable: "model",
      notes: [expect.stringContaining("this site gives none")],
    });
    const status = await world.client.getSandboxStatus({});
    expect(status.templates).toBe(1);
    expect(status.health?.forkP50Ms).toBeGreaterThan(0);
    expect(readdirSync(path.join(directory, "state/sandbox-manager/histories"))).toEqual([]);
  }, 60_000);

  test("an answer in the image keeps every trial of the task from running", async () => {
    const task = writeTask(tasks, "leaky", toml(), {
      "solution/gold.patch": `--- a/src/add.cjs\n+++ b/src/add.cjs\n@@ -0,0 +1 @@\n+${BROKEN}`,
    });
    for (const _ of [1, 2]) expect(await failure(task)).toContain("MORTISE_SANDBOX_SEAL_ANSWER");
    expect(world.model.requests).toEqual([]);
  }, 60_000);

  test("a work tree the image does not have is the task's fault, named by its field", async () => {
    const task = writeTask(tasks, "nowhere", toml('workdir = "/nowhere"'));
    expect(await failure(task)).toMatch(/^MORTISE_TASK_INVALID: .*environment\.workdir: .*"\/nowhere"/s);
  }, 60_000);

  test("a work tree of the task's own is laid over the image, where the task wants it", async () => {
    const laid = 'workdir = "/srv/tree"\nenv = { SETTING = "${HOST_SETTING}" }';
    const files = {
      "environment/repository/src/add.cjs": BROKEN,
      "environment/repository/only-here.txt": "of the task\n",
    };
    // The image's own repository holds the answer, wherever the task works.
    const told = writeTask(tasks, "told", toml(laid), files);
    expect(await failure(told)).toContain("MORTISE_SANDBOX_SEAL_ANSWER");
    const other = "+exports.add = (left, right) => right + left;\n";
    const task = writeTask(tasks, "laid", toml(laid), {
      ...files,
      "solution/solve.sh": "exit 0\n",
      "solution/gold.patch": `--- a/src/add.cjs\n+++ b/src/add.cjs\n@@ -1 +1 @@\n-${BROKEN}${other}`,
    });
    world.model.reply = { say: "it said a-secret-of-the-host and secret-of-laid" };
    const { trial } = await world.started({ task, trial: "laid" });
    const end = await world.ended(trial);
    const { body } = world.model.requests[0]!;
    expect(body).toMatchObject({ cwd: "/srv/tree", uid: 1000, setting: "a-secret-of-the-host" });
    expect(body.files).toEqual(["only-here.txt", "src", "src/add.cjs"]);
    expect(end.outputTail).toBe("it said *** and ***");
    expect(world.manager.output).not.toContain("a-secret-of-the-host");
  }, 60_000);

  test.runIf(available.includes("docker"))(
    "a task that brings a Dockerfile runs in what is built of it",
    async () => {
      const builder = new DockerBackend({ stateDirectory: path.join(base, `builder-${backend}`) });
      await builder.start();
      const { digest } = await builder.prepareImage({ kind: "local", path: image });
      await builder.stop();
      const dockerfile = `FROM mortise-local:${digest.slice(0, 16)}\nENV SETTING=of-${path.basename(base)}\nCOPY more/ more/\n`;
      const task = writeTask(tasks, "built", "[environment]\nmemory_mb = 256\nstorage_mb = 32\n", {
        "environment/Dockerfile": dockerfile,
        "environment/more/file.txt": "of the context\n",
      });
      world.model.reply = { write: { "src/add.cjs": REPAIRED } };
      const { trial } = await world.started({ task, setupTimeoutMs: 120_000 });
      expect(await world.ended(trial)).toMatchObject({ patchEntries: 1 });
      const { stages } = await world.report(trial, "ended");
      expect(stages.find(({ stage }) => stage === Stage.BUILD)?.wallMs).toBeGreaterThan(0);
      const again = (await world.started({ task })).trial;
      await world.ended(again);
      const later = (await world.report(again, "ended")).stages.map(({ stage }) => stage);
      expect(later).not.toContain(Stage.BUILD);
      const { body } = world.model.requests[0]!;
      expect(body).toMatchObject({ cwd: "/testbed", setting: `of-${path.basename(base)}`, hasTests: false });
      expect(body.files).toContain("more/file.txt");
      expect(body.files).not.toContain(".git/refs/heads/later");
      await removeBuilt(path.join(directory, "state/sandbox-manager", backend));
    },
    180_000,
  );

  test.runIf(available.includes("docker"))(
    "building has a limit of its own; a trial that cannot wait leaves the build to the next",
    async () => {
      const builder = new DockerBackend({ stateDirectory: path.join(base, `slow-builder-${backend}`) });
      await builder.start();
      const { digest } = await builder.prepareImage({ kind: "local", path: image });
      await builder.stop();
      const task = writeTask(tasks, "slow", "[environment]\nmemory_mb = 256\nstorage_mb = 32\n", {
        "environment/Dockerfile": `FROM mortise-local:${digest.slice(0, 16)}\nENV A=${path.basename(base)}${backend}\nRUN sleep 4\n`,
      });
      const impatient = await world.launch({ task, buildTimeoutMs: 300 });
      const { fact, stages } = await world.report(impatient, "failed", "prepared");
      expect(fact.value).toMatchObject({
        code: "MORTISE_SANDBOX_STAGE_TIMEOUT",
        reason: expect.stringMatching(/rollout\.buildTimeoutMs is 300; the image of slow is being built/),
      });
      expect(stages.map(({ stage }) => stage)).toContain(Stage.BUILD);
      const cancelled = await world.launch({ task });
      await expect.poll(async () => (await world.client.getSandboxStatus({})).preparing).toBe(1);
      await world.client.cancelTrial({ run: RUN, trial: cancelled, reason: "test" });
      expect((await world.ended(cancelled)).termination).toBe(TerminationReason.CANCELLED);
      // What takes long is the build's time, not the setup's.
      const patient = await world.started({ task, setupTimeoutMs: 120_000, buildTimeoutMs: 120_000 });
      await world.ended(patient.trial);
      await removeBuilt(path.join(directory, "state/sandbox-manager", backend));
    },
    180_000,
  );

  test("a health check has to pass before the trial is prepared, and is the same for grading", async () => {
    const check = (command: string) =>
      toml("", "").concat(
        `[environment.healthcheck]\ncommand = "${command}"\ninterval_sec = 0.05\nretries = 3\ntimeout_sec = 5\n`,
      );
    const healthy = writeTask(tasks, "healthy", check("mkdir /tmp/first || test -d /tmp/first/.."));
    await world.ended((await world.started({ task: healthy })).trial);
    const ill = writeTask(tasks, "ill", check("echo not up >&2; exit 7"));
    const reason = await failure(ill);
    expect(reason).toContain("environment.healthcheck failed 3 times");
    expect(reason).toContain("not up");
    const run = await world.client.runOnce({ run: RUN, trial: "t", task: ill, argv: ["true"] });
    expect(run.failureReason).toContain("environment.healthcheck");
  }, 60_000);

  test("what cannot be run is refused by the field that is wrong", async () => {
    const unpinned = writeTask(tasks, "unpinned", "[agent]\n", { "environment/Dockerfile": "FROM debian\n" });
    expect(await failure(unpinned)).toMatch(
      available.includes("docker")
        ? /MORTISE_TASK_BUILD: .*environment\/Dockerfile, line 1: debian is whatever/
        : /MORTISE_TASK_INVALID: .*environment\.docker_image is absent/,
    );
    const missing = writeTask(tasks, "missing", '[environment]\ndocker_image = "oci:nowhere"\n');
    expect(await failure(missing)).toContain("MORTISE_SANDBOX_IMAGE_UNKNOWN");
    const asking = writeTask(tasks, "asking", toml('env = { A = "${HOME}" }'));
    expect(await failure(asking)).toContain("environment.env.A asks for the variable HOME");
    const task = writeTask(tasks, "inside", toml());
    const scratch = { overrides: { scratch: [{ target: "/big", bytes: 1n << 40n }] } };
    expect(await failure(task, scratch)).toContain("sandbox.maxScratchBytes");
    expect(await failure(task, { overrides: { mounts: [{ name: "none", target: "/x" }] } })).toContain(
      "sandbox.shared has data",
    );
  }, 60_000);

  test("a run's mounts are read-only, its scratch volumes have a size, its multipliers count", async () => {
    const task = writeTask(tasks, "inside", toml());
    mkdirSync(path.join(base, "shared"), { recursive: true });
    writeFileSync(path.join(base, "shared/file.txt"), "of the site\n");
    const overrides = {
      memoryMultiplier: 0.25,
      mounts: [{ name: "data", target: "/data" }],
      scratch: [{ target: "/volume", bytes: 1n << 20n }],
    };
    const end = async (reply: object, more: object = {}) => {
      world.model.reply = reply;
      return world.ended((await world.started({ task, overrides: { ...overrides, ...more } })).trial);
    };
    expect((await end({ print: "/data/file.txt" })).outputTail).toBe("of the site\n");
    expect((await end({ write: { "/data/file.txt": "" } })).outputTail).toContain("EROFS");
    expect(await end({ write: { "/volume/a": "x".repeat(1 << 19) } })).toMatchObject({
      exitCode: 0,
      patchEntries: 0,
    });
    expect((await end({ write: { "/volume/a": "x".repeat(1 << 21) } })).outputTail).toContain("ENOSPC");
    // A tenth of 20 s.
    const hung = await end({ hang: true }, { agentTimeoutMultiplier: 0.1 });
    expect(hung.termination).toBe(TerminationReason.AGENT_TIMEOUT);
  }, 60_000);

  test("each stage has a limit and a reason of its own", async () => {
    const slow = writeTask(
      tasks,
      "slow",
      toml().concat('[environment.healthcheck]\ncommand = "sleep 20"\ntimeout_sec = 30\n'),
    );
    expect(await failure(slow, { setupTimeoutMs: 700 })).toContain("rollout.setupTimeoutMs is 700");
    const task = writeTask(tasks, "inside", toml());
    expect(await failure(task, { warmTimeoutMs: 50, trial: "unclaimed" })).toBe("it was prepared");
    const { fact } = await world.report("unclaimed", "failed");
    expect(fact.value).toMatchObject({
      termination: TerminationReason.SANDBOX_LOST,
      code: "MORTISE_SANDBOX_STAGE_TIMEOUT",
      reason: expect.stringContaining("rollout.warmTimeoutMs"),
    });
  }, 60_000);

  // Docker's engine pulls by itself, and waits as it sees fit.
  test.runIf(backend === "runc")(
    "a registry that says to come again is waited for in a stage of its own, as long as the run allows",
    async () => {
      const asked: number[] = [];
      const registry = http.createServer((request, response) => {
        if (request.url?.includes("/manifests/")) asked.push(performance.now());
        const isBusy = request.url?.includes("/later/") && asked.length <= 1;
        response.writeHead(isBusy ? 429 : 404, isBusy ? { "retry-after": "6" } : {}).end();
      });
      await new Promise<void>((resolve) => registry.listen(0, "127.0.0.1", resolve));
      const { port } = registry.address() as AddressInfo;
      const later = writeTask(
        tasks,
        "later",
        `[environment]\ndocker_image = "127.0.0.1:${port}/later/image:1"\n`,
      );
      const impatient = await world.launch({ task: later, rateLimitTimeoutMs: 1_000 });
      const reportOf = async (trial: string) => {
        const { fact, stages } = await world.report(trial, "failed");
        const { wallMs = 0 } = stages.find(({ stage }) => stage === Stage.RATE_LIMIT) ?? {};
        return { value: fact.value, wallMs };
      };
      expect(await reportOf(impatient)).toMatchObject({
        value: {
          code: "MORTISE_SANDBOX_STAGE_TIMEOUT",
          reason: expect.stringContaining("rollout.rateLimitTimeoutMs"),
        },
        wallMs: 0,
      });
      asked.length = 0;
      const { value, wallMs } = await reportOf(await world.launch({ task: later, setupTimeoutMs: 3_000 }));
      expect(value).toMatchObject({ code: "MORTISE_SANDBOX_IMAGE_UNKNOWN" });
      // Timers and the two clocks may differ by some milliseconds.
      expect(wallMs).toBeGreaterThan(5_950);
      expect(asked[1]! - asked[0]!).toBeGreaterThan(5_950);
      await new Promise<void>((resolve) => registry.close(() => resolve()));
    },
    60_000,
  );

  test("a kept sandbox can be looked into, as the trial left it, until it expires", async () => {
    const task = writeTask(tasks, "inside", toml());
    world.model.reply = { write: { "left.txt": "by the agent\n" }, exit: 1 };
    const { trial } = await world.started({ task, keep: KeepPolicy.FAILED, keepMs: 600_000 });
    const { keptUntilMs } = await world.report(trial, "ended");
    expect(Number(keptUntilMs)).toBeGreaterThan(Date.now());
    const name = { run: RUN, trial };
    const look = (...argv: string[]) => world.client.execKept({ ...name, argv });
    const seen = await look("cat", "left.txt");
    expect(Buffer.from(seen.stdout).toString()).toBe("by the agent\n");
    expect((await look("sh", "-c", "exit 4")).exitCode).toBe(4);
    const { sandboxes } = await world.client.listKept({});
    expect(sandboxes).toMatchObject([{ trial, task: "inside", termination: TerminationReason.AGENT_CRASH }]);

    world.model.reply = {};
    const completed = await world.started({ task, keep: KeepPolicy.FAILED });
    await world.ended(completed.trial);
    expect((await world.report(completed.trial, "ended")).keptUntilMs).toBeUndefined();

    const brief = await world.started({ task, keep: KeepPolicy.ALWAYS, keepMs: 300 });
    await world.ended(brief.trial);
    await expect
      .poll(async () => (await world.client.listKept({})).sandboxes.map((each) => each.trial))
      .toEqual([trial]);
    expect(await world.client.releaseKept(name)).toMatchObject({ released: true });
    await expect(look("true")).rejects.toMatchObject({ code: "MORTISE_SANDBOX_NOT_KEPT" });
    const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
    expect(mounts.filter((line) => line.includes(directory) && line.includes("kept-"))).toEqual([]);
  }, 60_000);

  test("tasks that are named ahead are ready before they are launched", async () => {
    const task = writeTask(tasks, "ahead", toml());
    const before = (await world.client.getSandboxStatus({})).templates;
    const { accepted } = await world.client.prewarm({ run: RUN, harness: "scripted", tasks: [task] });
    expect(accepted).toBe(1);
    await expect
      .poll(async () => (await world.client.getSandboxStatus({})).templates, { timeout: 30_000 })
      .toBe(before + 1);
    const forks = (await world.client.getSandboxStatus({})).health?.forkP50Ms;
    await world.ended((await world.started({ task })).trial);
    expect(forks).toBeDefined();
    expect((await world.client.getSandboxStatus({})).templates).toBe(before + 1);
  }, 60_000);

  test("a drain takes templates and kept sandboxes along", async () => {
    const task = writeTask(tasks, "inside", toml());
    const { trial } = await world.started({ task, keep: KeepPolicy.ALWAYS });
    await world.ended(trial);
    await world.client.execKept({ run: RUN, trial, argv: ["true"] });
    const { templates, kept } = await world.client.getSandboxStatus({});
    expect([templates > 0, kept]).toEqual([true, 1]);
    expect(await world.manager.stop()).toBe(0);
    const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
    expect(mounts.filter((line) => line.includes(directory))).toEqual([]);
    if (backend !== "docker") return;
    const owner = ownerMark(path.join(directory, "state/sandbox-manager/docker"));
    const filters = { label: [`${OWNER_LABEL}=${owner}`] };
    const docker = new Docker();
    expect(await docker.listContainers({ all: true, filters })).toEqual([]);
    expect(await docker.listImages({ filters })).toEqual([]);
  }, 60_000);
});
