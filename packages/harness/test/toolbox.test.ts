/** What a toolbox holds starts where there is nothing else: in a root filesystem without a C library or a shell. */
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { elfNeeds, ensureToolbox, TOOLBOX, TOOLBOX_TARGET } from "../src/index.js";
import { findPython } from "../src/runtime/python.js";
import { startWithOwnLibraries } from "../src/toolbox/elf.js";

const directory = mkdtempSync(join(tmpdir(), "mortise-toolbox-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const isLinuxRoot = process.platform === "linux" && process.getuid?.() === 0;
if (!isLinuxRoot)
  console.log("toolbox tests that change the root directory skipped: they need root on Linux");
const python = await findPython([3, 10]).catch((error: Error) => {
  console.log(`toolbox tests of Python skipped: ${error.message}`);
  return undefined;
});

test.runIf(process.platform === "linux")(
  "a program's loader and its newest glibc are read from the file",
  () => {
    const needs = elfNeeds(process.execPath);
    expect(existsSync(needs!.loader!)).toBe(true);
    // Node's own symbols: at least those every supported version was built against.
    expect(needs!.glibc![0]).toBe(2);
    expect(needs!.glibc![1]).toBeGreaterThanOrEqual(17);
    expect(needs!.libraries).toContain("libc.so.6");
  },
);

test("what is no ELF program has no needs", () => {
  const script = join(directory, "script");
  writeFileSync(script, "#!/bin/sh\n");
  expect(elfNeeds(script)).toBeUndefined();
});

test.runIf(process.platform === "linux")(
  "names that do not fit are refused, and the file stays as it was",
  () => {
    const copy = join(directory, "node");
    copyFileSync(process.execPath, copy);
    expect(() => startWithOwnLibraries(copy, "/a/place/that/is/far/too/long/ld", "/lib")).toThrow(
      /bytes for its loader's name/,
    );
    expect(readFileSync(copy).equals(readFileSync(process.execPath))).toBe(true);
  },
);

describe.runIf(isLinuxRoot)("in an empty root", () => {
  const root = join(directory, "root");
  const inside = (...argv: string[]) => spawnSync("chroot", [root, ...argv], { encoding: "utf8" });

  beforeAll(async () => {
    const cacheDirectory = join(directory, "cache");
    const options = { programs: ["bash", "no-such-program"], cacheDirectory };
    const toolbox = await ensureToolbox({ ...options, ...(python && { python: python.path }) });
    expect(toolbox.programs).toEqual(["bash"]);
    expect((await ensureToolbox({ ...options, ...(python && { python: python.path }) })).directory).toBe(
      toolbox.directory,
    );
    mkdirSync(join(root, "opt"), { recursive: true });
    renameSync(toolbox.directory, join(root, TOOLBOX_TARGET));
  }, 120_000);

  test("node starts, and knows where it is", () => {
    const { stdout, stderr } = inside(TOOLBOX.node, "-p", "process.version");
    expect(stderr).toBe("");
    expect(stdout).toBe(`${process.version}\n`);
  });

  test("a program brought along starts", () => {
    expect(inside(`${TOOLBOX.programs}/bash`, "-c", "echo $((40 + 2))").stdout).toBe("42\n");
  });

  test("the probe says that there is no C library, and what is missing", () => {
    const names = ["bash", "/opt/rt/probe.cjs", "/lib64/ld", "librt.so.1"];
    const { stdout } = inside(TOOLBOX.node, TOOLBOX.probe, ...names);
    const missing = ["bash", "/lib64/ld", "librt.so.1"];
    expect(JSON.parse(stdout)).toEqual({ musl: false, glibc: null, missing });
  });

  test.runIf(python)("Python starts with its library and the libraries that one loads", () => {
    const code =
      "import ctypes, json, sqlite3, ssl, sys, zlib; print(json.dumps([sys.prefix, sys.version_info[:2]]))";
    const { stdout, stderr } = inside(TOOLBOX.python, "-c", code);
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual([`${TOOLBOX_TARGET}/python`, python!.version]);
  });
});
