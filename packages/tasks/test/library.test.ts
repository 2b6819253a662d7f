import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { filesBelow, importLibraryHistory } from "../src/index.js";

const LIBRARY = fileURLToPath(new URL("../library", import.meta.url));
const hasGit = spawnSync("git", ["--version"]).status === 0;
const scratch = mkdtempSync(join(tmpdir(), "mortise-library-"));

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test("the library passes its own tests", () => {
  const run = spawnSync(process.execPath, ["test/all.js"], { cwd: LIBRARY, encoding: "utf8" });
  expect(run.status).toBe(0);
  expect(run.stdout.match(/^ok /gm)?.length).toBeGreaterThan(20);
});

describe.skipIf(!hasGit)("the history (skipped without git on PATH)", () => {
  test("ends in exactly the bundled sources, every commit of it passing its tests", () => {
    importLibraryHistory(scratch);
    const git = (...args: string[]) =>
      spawnSync("git", ["-C", scratch, ...args], { encoding: "utf8" }).stdout;
    expect(readdirSync(scratch)).toContain(".git");
    const checkedOut = filesBelow(scratch).filter((path) => !path.startsWith(".git/"));
    expect(checkedOut).toEqual(filesBelow(LIBRARY));
    for (const path of checkedOut) {
      expect(readFileSync(join(scratch, path), "utf8"), path).toBe(readFileSync(join(LIBRARY, path), "utf8"));
    }
    const commits = git("rev-list", "--reverse", "main").trim().split("\n");
    expect(commits.length).toBeGreaterThan(4);
    for (const commit of commits) {
      git("checkout", "--quiet", commit);
      expect(spawnSync(process.execPath, ["test/all.js"], { cwd: scratch }).status, commit).toBe(0);
    }
  });

  test("cannot be imported into a missing directory", () => {
    expect(() => importLibraryHistory(join(scratch, "absent"))).toThrow("git init failed");
  });
});
