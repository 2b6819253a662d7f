/** Each root check must be able to fail: a check that cannot is worse than none. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const scripts = dirname(import.meta.dirname);
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "mortise-checks-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function check(script: string, ...args: string[]): { code: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(scripts, script), ...args], {
    encoding: "utf8",
  });
  return { code: status, output: stdout + stderr };
}

function write(path: string, content: string): void {
  const file = join(directory, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

describe("check-boundaries", () => {
  /** Sixty modules that import nothing wrong. */
  function writeCleanTree(): void {
    for (let index = 0; index < 60; index++)
      write(`services/proxy/src/part-${index}.ts`, `export const part = ${index};\n`);
    write("services/verifier/src/main.ts", "export const verifier = 1;\n");
  }
  const run = () => check("check-boundaries.mjs", "--root", directory);

  test("passes a clean tree and tells how much it read", () => {
    writeCleanTree();
    expect(run()).toEqual({ code: 0, output: "boundaries: 61 modules, 0 violations\n" });
  });
  test("fails when it read next to nothing", () => {
    write("services/proxy/src/main.ts", "export {};\n");
    expect(run()).toMatchObject({ code: 1, output: expect.stringContaining("proves nothing") });
  });
  test.for([
    ["service-imports-service", "services/proxy/src/bad.ts", 'import "../../verifier/src/main.js";\n'],
    [
      "service-imports-service",
      "services/proxy/src/bad.ts",
      'import type { X } from "@mortise/verifier";\nexport type Y = X;\n',
    ],
    [
      "package-imports-service",
      "packages/kernel/src/bad.ts",
      'import "../../../services/verifier/src/main.js";\n',
    ],
    ["contracts-do-io", "packages/contracts/src/bad.ts", 'import "node:fs";\n'],
    ["kernel-knows-a-domain", "packages/kernel/src/bad.ts", 'import "@mortise/capture";\n'],
    ["library-does-transport", "packages/objectives/src/bad.ts", 'import "@mortise/kernel";\n'],
    ["library-does-transport", "packages/capture/src/bad.ts", 'import "@nats-io/jetstream";\n'],
    ["production-imports-testkit", "services/proxy/src/bad.ts", 'import "@mortise/testkit";\n'],
    ["harness-knows-mortise", "harnesses/mini/src/bad.ts", 'import "@mortise/contracts";\n'],
  ] as const)("fails on %s in %s: %s", ([rule, path, content]) => {
    writeCleanTree();
    write(path, content);
    expect(run()).toMatchObject({ code: 1, output: expect.stringContaining(`${rule}: ${path} ->`) });
  });
});

describe("check-licences", () => {
  function run(licences: Record<string, string[]>): { code: number | null; output: string } {
    const listing = Object.entries(licences).map(([licence, names]) => [
      licence,
      names.map((name) => ({ name, versions: ["1.0.0"] })),
    ]);
    write("licences.json", JSON.stringify(Object.fromEntries(listing)));
    return check("check-licences.mjs", "--input", join(directory, "licences.json"));
  }

  test("passes permissive licences and expressions that allow one", () => {
    expect(run({ MIT: ["a"], "(GPL-3.0 OR Apache-2.0)": ["b"], "MIT AND BSD-3-Clause": ["c"] }).code).toBe(0);
  });
  test("fails on copyleft, on both sides of AND, and on what is unknown", () => {
    const { code, output } = run({
      MIT: ["fine"],
      "GPL-3.0": ["a"],
      "(MIT AND GPL-3.0)": ["b"],
      Unknown: ["c"],
      "MPL-2.0": ["d"],
    });
    expect(code).toBe(1);
    expect(output.split("\n").filter((line) => line.includes("@1.0.0"))).toHaveLength(4);
  });
  test("fails when nothing was listed", () => {
    expect(run({})).toMatchObject({ code: 1, output: expect.stringContaining("proves nothing") });
  });
});

describe("buf-breaking", () => {
  const git = (...args: string[]) =>
    spawnSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.invalid", ...args], {
      cwd: directory,
    });
  const message = (type: string) => `syntax = "proto3";\npackage t.v1;\nmessage M {\n  ${type} n = 1;\n}\n`;
  const run = () => check("buf-breaking.mjs", "--root", directory);

  beforeEach(() => {
    write("buf.yaml", "version: v2\nmodules:\n  - path: proto\nbreaking:\n  use:\n    - FILE\n");
    git("init", "-q", "-b", "main");
    write("readme", "first\n");
    git("add", "readme", "buf.yaml");
    git("commit", "-qm", "first");
  });

  test("says that there is nothing to compare with before the first protobuf file is committed", () => {
    write("proto/t/v1/m.proto", message("uint64"));
    expect(run()).toMatchObject({ code: 0, output: expect.stringContaining("these are the first") });
  });
  test("compares with main while nothing is tagged, and fails when a field changes its type", () => {
    write("proto/t/v1/m.proto", message("uint64"));
    git("add", "proto");
    git("commit", "-qm", "messages");
    expect(run()).toMatchObject({ code: 0, output: expect.stringContaining("no release is tagged yet") });
    write("proto/t/v1/m.proto", message("uint32"));
    expect(run()).toMatchObject({
      code: 100,
      output: expect.stringMatching(/changed type from "uint64" to "uint32".*broken/s),
    });
  });
  test("compares with the last tag once there is one", () => {
    write("proto/t/v1/m.proto", message("uint64"));
    git("add", "proto");
    git("commit", "-qm", "messages");
    git("tag", "v1");
    write("proto/t/v1/m.proto", message("uint32"));
    git("commit", "-qam", "broken after the release");
    expect(run()).toMatchObject({ code: 100, output: expect.stringContaining("against tag v1: broken") });
  });
});

describe("generate-docs", () => {
  test("--check fails on pages that are missing or were edited, and passes on fresh ones", () => {
    const run = (...args: string[]) => check("generate-docs.mjs", "--out", directory, ...args);
    expect(run("--check")).toMatchObject({ code: 1, output: expect.stringContaining("3 stale") });
    expect(run().code).toBe(0);
    expect(run("--check")).toMatchObject({ code: 0, output: "generated docs: 3 pages, 0 stale\n" });
    write("errors.md", "edited by hand\n");
    expect(run("--check")).toMatchObject({ code: 1, output: expect.stringContaining("errors.md is stale") });
  });
});
