/**
 * Sealing as the trial pipeline calls it, on its thread: a report, or a refusal that says what was found.
 * Needs root and git, and the built worker.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { sealRoot } from "../../dist/sealing/index.js";
import { BASE_SOURCE, canSeal, FIXED_SOURCE, hasPython, PATIENT, SOURCE, TestRoot } from "./repositories.js";

let present: TestRoot;
beforeEach(() => {
  present = new TestRoot();
});
afterEach(() => present.remove());

describe.skipIf(!canSeal)("sealing a root", PATIENT, () => {
  test("gives the record of a root in which nothing is left", async () => {
    present.commitFix();
    const report = await sealRoot(present.root, present.request());
    expect(report).toMatchObject({
      format: "mortise-seal/1",
      history: { state: "hidden", repository: "app/.git", trackedFrom: "index" },
      search: { isClean: true, nHits: 0, nGaps: 0, searchedObjects: 0 },
    });
    expect(report.search.distinctiveness[0]).toMatchObject({ kind: "gold" });
    expect(report.search.distinctiveness[0]?.nProbes).toBeGreaterThanOrEqual(3);
    expect(JSON.parse(JSON.stringify(report))).toEqual(report);
    expect(present.read(`app/${SOURCE}`)).toBe(BASE_SOURCE);
  });

  test("writes what it needs meanwhile where it is told to: a manager that is killed sweeps only there", async () => {
    const scratch = mkdtempSync(path.join(tmpdir(), "mortise-scratch-"));
    const request = { ...present.request(), scratch };
    vi.stubEnv("TMPDIR", "/nowhere");
    try {
      expect((await sealRoot(present.root, request)).search.isClean).toBe(true);
      expect(readdirSync(scratch)).toEqual([]);
    } finally {
      vi.unstubAllEnvs();
      rmSync(scratch, { recursive: true });
    }
  });

  test("is equal for equal roots", async () => {
    const other = new TestRoot();
    try {
      for (const root of [present, other]) root.write("opt/x.log", "the same");
      const answers = present.answers;
      const reports = [present, other].map((root) => sealRoot(root.root, root.request({ answers })));
      const [one, two] = await Promise.all(reports);
      expect(one).toEqual(two);
    } finally {
      other.remove();
    }
  });

  for (const [what, leave] of Object.entries<(root: TestRoot) => void>({
    "a newer copy in site-packages": (root) =>
      void root.write("usr/lib/python3/site-packages/names.py", FIXED_SOURCE),
    "a checkout of a linked worktree": (root) => {
      root.commitFix();
      root.git("worktree", "add", "--quiet", "../srv/later", "later");
    },
    "the fix in the base files": (root) => {
      root.write(`app/${SOURCE}`, FIXED_SOURCE);
      root.commit("too late");
    },
  }))
    test(`refuses ${what}`, async () => {
      leave(present);
      const refused = sealRoot(present.root, present.request());
      await expect(refused).rejects.toMatchObject({
        code: "MORTISE_SANDBOX_SEAL_ANSWER",
        detail: { report: { search: { isClean: false } } },
      });
    });

  test.skipIf(!hasPython)("refuses a wheel outside the caches", async () => {
    present.wheel("wheels/names-2.0-py3-none-any.whl");
    await expect(sealRoot(present.root, present.request())).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_SEAL_ANSWER",
      message: expect.stringContaining("wheels/names-2.0-py3-none-any.whl!names.py"),
    });
  });

  test("refuses what could not be searched whole", async () => {
    present.write("opt/lost.pack", Buffer.from("PACK\0\0\0\x02\0\0\0\x01 and no object"));
    await expect(sealRoot(present.root, present.request())).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_SEAL_ANSWER",
      message: expect.stringContaining("opt/lost.pack (incomplete-pack)"),
    });
  });

  test("refuses a step that cannot be done, with what to do", async () => {
    const refused = sealRoot(present.root, present.request({ git: "/nonexistent/git" }));
    await expect(refused).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_SEAL",
      disposition: "terminal",
      fix: expect.stringContaining("Install git"),
    });
    await expect(sealRoot("/nonexistent/root", present.request())).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_SEAL",
    });
  });

  test("ends when it is aborted", async () => {
    await expect(sealRoot(present.root, present.request(), AbortSignal.abort())).rejects.toThrow(/abort/i);
    const controller = new AbortController();
    const sealing = sealRoot(present.root, present.request(), controller.signal);
    controller.abort(new Error("enough"));
    await expect(sealing).rejects.toThrow("enough");
    expect(existsSync(present.root)).toBe(true);
  });
});
