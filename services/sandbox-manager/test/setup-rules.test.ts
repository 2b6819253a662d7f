/** Small rules of a trial's setup: what may be reached, what is used, when a task is healthy, when a host is not. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { create } from "@bufbuild/protobuf";
import { SandboxLimitsSchema, SandboxOverridesSchema, SiteConfig } from "@mortise/contracts";
import { ManualClock } from "@mortise/kernel";
import type { Healthcheck, Task } from "@mortise/tasks";
import { describe, expect, test } from "vitest";
import { NO_OUTPUT } from "../src/backend/output.js";
import type { Outcome } from "../src/backend/types.js";
import { healthWarnings, hostHealth, RecentTimes } from "../src/host-health.js";
import { limitsFor, scratchVolumes, sharedMounts } from "../src/limits.js";
import type { SealReport } from "../src/sealing/types.js";
import { imageOf } from "../src/shelf/task-image.js";
import { unproved } from "../src/shelf/unproved.js";
import { waitUntilHealthy } from "../src/trial/healthcheck.js";
import { assertOwnPlaces } from "../src/trial/own-places.js";
import { parseModelAddress, reachOf } from "../src/trial/reach.js";

const place = { directory: "/x" };
const site = (sandbox: object = {}) =>
  SiteConfig.parse({ nats: { url: "nats://x" }, identity: place, state: place, tasks: place, sandbox })
    .sandbox;
const model = { host: "127.0.0.1", port: 4000 };

describe("what an agent may reach", () => {
  const reach = (mode: "public" | "no-network" | "allowlist", hosts: string[], sandbox = {}) =>
    reachOf({ mode, allowedHosts: hosts }, site(sandbox), model);

  test("is the model alone unless the task lists hosts, and for public tasks unless the site does", () => {
    expect(reach("no-network", [])).toEqual({
      network: { kind: "model", ...model },
      reachable: "model",
      notes: [],
    });
    expect(reach("allowlist", [])).toMatchObject({ reachable: "model", notes: [] });
    expect(reach("allowlist", ["b.org", "a.org", "b.org"])).toMatchObject({
      network: { kind: "allow-list", allowedHosts: ["a.org", "b.org"], ...model },
      reachable: "allow-list: a.org, b.org",
    });
    expect(reach("public", [])).toMatchObject({
      reachable: "model",
      notes: [expect.stringContaining("gives none")],
    });
    expect(reach("public", [], { publicHosts: ["a.org"] })).toMatchObject({
      reachable: "allow-list: a.org",
      notes: [expect.stringContaining("only its sandbox.publicHosts")],
    });
    expect(reach("no-network", [], { publicHosts: ["a.org"] }).reachable).toBe("model");
  });

  test.each(["", "host", "host:", ":1", "host:0", "host:70000", "host:1.5"])(
    "refuses %j as an address",
    (text) => {
      expect(() => parseModelAddress(text)).toThrow("is not host:port");
    },
  );
  test("reads IPv6 addresses", () =>
    expect(parseModelAddress("[::1]:80")).toEqual({ host: "::1", port: 80 }));
});

describe("what a sandbox may use", () => {
  const task = { environment: { cpus: 1, memoryMb: 256, storageMb: 64 } } as Task;
  const limits = create(SandboxLimitsSchema, { cpus: 3, memoryBytes: 1n << 30n, pids: 40 });

  test("is the task's wish times the run's multipliers, or the run's word, and never above the site's limit", () => {
    const roomy = site({ cpus: 4, memoryBytes: 2 ** 32, pids: 64, diskBytes: 2 ** 30 });
    const overrides = create(SandboxOverridesSchema, { cpusMultiplier: 2, memoryMultiplier: 1.5 });
    expect(limitsFor(roomy, task)).toMatchObject({
      cpus: 1,
      memoryBytes: 2 ** 28,
      pids: 64,
      diskBytes: 2 ** 26,
    });
    expect(limitsFor(roomy, task, { overrides, memoryFactor: 2 })).toMatchObject({
      cpus: 2,
      memoryBytes: 3 * 2 ** 28,
    });
    expect(limitsFor(roomy, task, { limits, overrides })).toMatchObject({
      cpus: 3,
      memoryBytes: 2 ** 30,
      pids: 40,
    });
    const narrow = site({ cpus: 0.5, memoryBytes: 2 ** 27, pids: 16 });
    expect(limitsFor(narrow, task, { limits })).toMatchObject({ cpus: 0.5, memoryBytes: 2 ** 27, pids: 16 });
  });

  test("has the run's word doubled for grading too", () => {
    const roomy = site({ cpus: 4, memoryBytes: 2 ** 32, pids: 64, diskBytes: 2 ** 30 });
    expect(limitsFor(roomy, task, { limits, memoryFactor: 2 })).toMatchObject({ memoryBytes: 2 ** 31 });
  });

  test.each([
    ["environment.memory_mb", "MORTISE_TASK_INVALID", { memoryMb: 1 }, {}],
    ["environment.memory_mb", "MORTISE_TASK_INVALID", { memoryMb: 1 }, { memoryMultiplier: 4 }],
    ["environment.cpus", "MORTISE_TASK_INVALID", { cpus: 0.001 }, {}],
    ["environment.storage_mb", "MORTISE_TASK_INVALID", { storageMb: 0.5 }, {}],
    ["rollout.multipliers.memory", "MORTISE_SANDBOX_SETUP", {}, { memoryMultiplier: 0.01 }],
    ["rollout.multipliers.cpus", "MORTISE_SANDBOX_SETUP", {}, { cpusMultiplier: 0.001 }],
  ])("that is too little to start anything is refused, and %s named", (field, code, wish, changes) => {
    const small = { directory: "/tasks/t", environment: { ...task.environment, ...wish } } as Task;
    const overrides = create(SandboxOverridesSchema, changes);
    expect(() => limitsFor(site({}), small, { overrides })).toThrow(
      expect.objectContaining({ code, detail: { field }, message: expect.stringMatching(/less than \d/) }),
    );
  });

  test("of the site or the run that is too little is theirs, not the task's", () => {
    const failing = (wishes: Parameters<typeof limitsFor>[2], given = site({})) =>
      expect(() => limitsFor(given, task, wishes));
    const asked = create(SandboxLimitsSchema, { memoryBytes: 1024n });
    failing({ limits: asked }).toThrow("rollout.limits.memoryBytes");
    failing({}, site({ cpus: 0.001 })).toThrow(
      "sandbox.cpus gives a sandbox 0.001 cpus; nothing starts with less than 0.01",
    );
  });

  test("shared directories by the site's names only, scratch volumes within its limit", () => {
    const given = site({ shared: { data: "/srv/data" }, maxScratchBytes: 100 });
    const mount = (name: string) => create(SandboxOverridesSchema, { mounts: [{ name, target: "/data" }] });
    expect(sharedMounts(given, mount("data"))).toEqual([{ source: "/srv/data", target: "/data" }]);
    expect(() => sharedMounts(given, mount("/etc"))).toThrow("sandbox.shared has data");
    expect(() => sharedMounts(given, mount("constructor"))).toThrow("sandbox.shared has data");
    const scratch = (bytes: bigint) => create(SandboxOverridesSchema, { scratch: [{ target: "/s", bytes }] });
    expect(scratchVolumes(given, scratch(100n))).toEqual([{ target: "/s", bytes: 100 }]);
    expect(() => scratchVolumes(given, scratch(101n))).toThrow("sandbox.maxScratchBytes is 100");
  });
});

describe("what a run mounts", () => {
  const places = (mount: string, scratch: string) => () =>
    assertOwnPlaces(
      create(SandboxOverridesSchema, {
        mounts: [{ name: "data", target: mount }],
        scratch: [{ target: scratch, bytes: 1n }],
      }),
      "/srv/work",
    );

  test("may lie anywhere that is free, in the work tree too", () => {
    expect(places("/data", "/srv/work/build")).not.toThrow();
    expect(places("/srv/worker", "/data")).not.toThrow();
  });

  test("never lies over the work tree, the harness, the kernel's places or another of them", () => {
    expect(places("/data", "/srv/work")).toThrow("rollout.scratch: /srv/work would lie over the work tree");
    expect(places("/srv", "/data")).toThrow("rollout.mounts: /srv would lie over the work tree");
    for (const taken of ["/proc", "/dev/shm", "/opt", "/opt/harness/x", "/home"])
      expect(places(taken, "/data")).toThrow("which is taken");
    expect(places("/data", "/data/scratch")).toThrow("rollout.scratch: /data/scratch meets /data");
  });
});

test.each([
  ["registry.example/a:1", { kind: "registry", reference: "registry.example/a:1" }],
  ["oci:images/a", { kind: "local", path: "@/images/a" }],
  ["oci-archive:/srv/a.tar", { kind: "local", path: "/srv/a.tar" }],
  ["docker-archive:a.tar:name:tag", { kind: "local", path: "@/a.tar", name: "name:tag" }],
])("the image %s, in the task's own directory where that is only linked to", (dockerImage, spec) => {
  const tasks = mkdtempSync(path.join(realpathSync(tmpdir()), "mortise-image-"));
  try {
    const own = path.join(tasks, "own");
    const linked = path.join(tasks, "site/tasks/t");
    mkdirSync(own);
    mkdirSync(path.dirname(linked), { recursive: true });
    symlinkSync(own, linked);
    const placed = "path" in spec ? { ...spec, path: spec.path?.replace("@", own) } : spec;
    expect(imageOf({ directory: linked, environment: { dockerImage } } as Task)).toEqual(placed);
  } finally {
    rmSync(tasks, { recursive: true });
  }
});

describe("a health check", () => {
  const check: Healthcheck = {
    command: "true",
    intervalMs: 10,
    timeoutMs: 1000,
    startPeriodMs: 100,
    startIntervalMs: 30,
    retries: 2,
  };

  /** The time at which it was over, and how often the command ran. */
  async function waited(outcomes: readonly Outcome[]) {
    const clock = new ManualClock();
    let runs = 0;
    const exec = async () => {
      const outcome = outcomes[Math.min(runs++, outcomes.length - 1)]!;
      return { outcome, stdout: NO_OUTPUT, stderr: NO_OUTPUT, usage: {}, wallMs: 0, isInsecure: false };
    };
    const facts = { environment: {}, user: "agent" as const, clock, signal: new AbortController().signal };
    let end: string | undefined;
    void waitUntilHealthy({ exec }, check, facts).then(
      () => (end = "healthy"),
      (error: Error) => (end = error.message),
    );
    while (end === undefined) {
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
      if (end === undefined) clock.advance(5);
    }
    return { end, atMs: clock.now(), runs };
  }
  const failed: Outcome = { kind: "exited", code: 1 };

  test("passes at the first success", async () => {
    expect(await waited([failed, failed, { kind: "exited", code: 0 }])).toEqual({
      end: "healthy",
      atMs: 60,
      runs: 3,
    });
  });
  test("counts failures only after the start period, timeouts too", async () => {
    const { end, atMs, runs } = await waited([failed, failed, failed, failed, { kind: "timeout" }]);
    expect(end).toContain("failed 2 times");
    expect([atMs, runs]).toEqual([130, 6]);
  });
  test("gives up at once when the command cannot be run", async () => {
    expect(await waited([{ kind: "refused", reason: "no shell" }])).toMatchObject({ runs: 1, atMs: 0 });
  });
});

describe("a host", () => {
  const times = { starts: new RecentTimes(3), forks: new RecentTimes(3) };

  test("is read from the kernel's files, and what is not there is absent", () => {
    const proc = mkdtempSync(path.join(tmpdir(), "mortise-proc-"));
    expect(hostHealth(times, proc)).toEqual({});
    mkdirSync(path.join(proc, "pressure"));
    writeFileSync(
      path.join(proc, "cgroups"),
      "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t4\t60001\t1\n",
    );
    writeFileSync(path.join(proc, "meminfo"), "MemFree: 1 kB\nPercpu:    2048 kB\n");
    writeFileSync(
      path.join(proc, "pressure/io"),
      "some avg10=75.50 avg60=1.00 avg300=0.00 total=9\nfull avg10=1.00\n",
    );
    const health = hostHealth(times, proc);
    expect(health).toEqual({ cgroups: 60_001, percpuBytes: 2048 * 1024, diskWait: 0.755 });
    expect(healthWarnings(health)).toEqual([
      expect.stringContaining("60001 memory control groups"),
      expect.stringContaining("76 % of the time something waits for a disk"),
    ]);
    rmSync(proc, { recursive: true });
  });

  test("is slow when the median of its last starts is", () => {
    for (const ms of [9000, 1300, 1300, 10]) times.starts.add(ms);
    for (const ms of [600, 600]) times.forks.add(ms);
    expect(times.starts.p50()).toBe(1300);
    expect(healthWarnings(hostHealth(times, "/nowhere"))).toEqual([
      "sandboxes take 1300 ms to start",
      "forks of templates take 600 ms",
    ]);
    for (const ms of [10, 10]) times.starts.add(ms);
    expect(times.starts.p50()).toBe(10);
  });
});

describe("what a clean search does not show", () => {
  const search = (nProbes: Partial<Record<"gold" | "hidden-file", number>>) => ({
    search: {
      probes: Array(Object.values(nProbes).reduce((sum, n) => sum + n, 0)).fill({}),
      distinctiveness: Object.entries(nProbes).map(([kind, n]) => ({
        kind,
        nLines: 9,
        nDistinctive: n,
        nProbes: n,
      })),
    } as unknown as SealReport["search"],
  });

  test("is said of each answer that has no line to look for, and of tasks that name none", () => {
    expect(unproved(search({ gold: 3, "hidden-file": 2 }))).toEqual([]);
    expect(unproved(search({ gold: 0, "hidden-file": 2 }))).toEqual([
      expect.stringMatching(/^no line of the gold patch tells/),
    ]);
    expect(unproved(search({}))).toEqual([expect.stringContaining("the search shows nothing")]);
  });
});
