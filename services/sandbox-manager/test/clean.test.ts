/** What is removed of a dead manager and of its caches, and what never is. Real processes, mounts and control groups. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { RuncBackend } from "../src/backend/runc/backend.js";
import { CgroupHost } from "../src/backend/runc/cgroup.js";
import { cgroupParent } from "../src/backend/runc/sweep.js";
import { cacheEntries, dispensable } from "../src/cleaning/cache-entries.js";
import { clean } from "../src/cleaning/clean.js";

const base = mkdtempSync(path.join(tmpdir(), "mortise-clean-"));
const runc = await new RuncBackend({ stateDirectory: base, runc: "runc" }).availability();
afterAll(() => rmSync(base, { recursive: true, force: true }));

const DAY_MS = 86_400_000;
const options = (stateDirectory: string, changes: object = {}) => ({
  stateDirectory,
  isDryRun: false,
  maxAgeMs: DAY_MS,
  maxBytes: Number.POSITIVE_INFINITY,
  runc: "runc",
  now: Date.now(),
  ...changes,
});
const mountsBelow = (directory: string) =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(directory));

describe.skipIf(!runc.ok)("after a manager", () => {
  async function running(state: string): Promise<ChildProcess> {
    mkdirSync(state, { recursive: true });
    const child = fork(
      path.join(import.meta.dirname, "second-manager.ts"),
      [path.join(state, "runc"), "run"],
      {
        silent: true,
      },
    );
    expect((await once(child, "message"))[0]).toEqual({ outcome: "running" });
    return child;
  }

  test("a live one keeps everything; of a dead one a dry run removes nothing, then all goes but leases", async () => {
    const state = path.join(base, "state");
    mkdirSync(path.join(state, "leases"), { recursive: true });
    writeFileSync(path.join(state, "leases/l1.json"), "{}");
    const child = await running(state);
    const [claimed] = await clean(options(state, { maxAgeMs: 0 }));
    expect(claimed).toMatchObject({ state: "claimed", reason: `process ${child.pid} uses it` });
    expect(mountsBelow(state).length).toBeGreaterThan(2);
    child.kill("SIGKILL");
    await once(child, "exit");

    const [looked] = await clean(options(state, { isDryRun: true }));
    expect(looked).toMatchObject({ state: "cleaned", leftovers: { cgroups: 1, directories: 1 } });
    expect(looked!.leftovers!.mounts).toBeGreaterThan(2);
    expect(mountsBelow(state).length).toBe(looked!.leftovers!.mounts);
    const [cleaned] = await clean(options(state));
    expect(cleaned!.leftovers).toMatchObject({ mounts: looked!.leftovers!.mounts, cgroups: 1 });
    expect(mountsBelow(state)).toEqual([]);
    expect(CgroupHost.detect()!.children(cgroupParent(path.join(state, "runc")))).toEqual([]);
    expect(readdirSync(path.join(state, "leases"))).toEqual(["l1.json"]);
    expect(cleaned!.removed.entries).toBe(0);
    expect(cleaned!.kept.entries).toBeGreaterThan(0);
    expect(existsSync(path.join(state, "runc/owner"))).toBe(false);

    const [emptied] = await clean(options(state, { maxAgeMs: -1 }));
    expect(emptied).toMatchObject({ kept: { entries: 0 }, removed: cleaned!.kept });
    // A next manager starts from nothing.
    const next = await running(state);
    next.kill("SIGKILL");
    await once(next, "exit");
    await clean(options(state));
    expect(mountsBelow(state)).toEqual([]);
  });
});
if (!runc.ok) test.skip(`after a manager: ${runc.reason}`, () => undefined);

test("entries go by age, the oldest first while there are too many bytes", () => {
  const state = path.join(base, "caches");
  const age = (place: string, days: number) => {
    const at = Date.now() / 1000 - days * 86_400;
    utimesSync(place, at, at);
  };
  for (const [name, days] of [
    ["old", 9],
    ["newer", 3],
    ["newest", 1],
  ] as const) {
    const place = path.join(state, "trees", name);
    mkdirSync(place, { recursive: true });
    writeFileSync(path.join(place, "file"), Buffer.alloc(64 * 1024));
    age(place, days);
  }
  // A layer that is old and was read today is not unused.
  const layer = path.join(state, "store/layers/key");
  mkdirSync(layer, { recursive: true });
  writeFileSync(path.join(layer, "layer.json"), "{}");
  age(layer, 30);
  const entries = cacheEntries(state);
  const going = (limits: object) =>
    dispensable(entries, {
      now: Date.now(),
      maxAgeMs: 99 * DAY_MS,
      maxBytes: Number.POSITIVE_INFINITY,
      ...limits,
    }).map((entry) => path.basename(entry.path));
  expect(going({})).toEqual([]);
  expect(going({ maxAgeMs: 7 * DAY_MS })).toEqual(["old"]);
  expect(going({ maxBytes: 100 * 1024 })).toEqual(["old", "newer"]);
  expect(going({ maxBytes: 0 }).toSorted()).toEqual(["key", "newer", "newest", "old"]);
});

test("what stays is within the limits, and nothing goes that need not", () => {
  const entry = fc.record({ path: fc.uuid(), bytes: fc.nat(100), usedAtMs: fc.nat(1000) });
  fc.assert(
    fc.property(fc.array(entry), fc.nat(1000), fc.nat(500), (entries, maxAgeMs, maxBytes) => {
      const gone = new Set(dispensable(entries, { now: 1000, maxAgeMs, maxBytes }));
      const stays = entries.filter((each) => !gone.has(each));
      const bytes = stays.reduce((sum, each) => sum + each.bytes, 0);
      expect(bytes).toBeLessThanOrEqual(maxBytes);
      for (const each of stays) expect(1000 - each.usedAtMs).toBeLessThanOrEqual(maxAgeMs);
      for (const each of gone)
        for (const other of stays) expect(other.usedAtMs).toBeGreaterThanOrEqual(each.usedAtMs);
    }),
  );
});
