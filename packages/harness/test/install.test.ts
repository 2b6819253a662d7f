/** A runtime's directory is whole or absent, and what cannot be obtained says which harness and why. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CommandHarness, commandAdapter, ensureRuntime, type HarnessAdapter } from "../src/index.js";

const base = commandAdapter(CommandHarness.parse({ name: "agent", argv: ["agent"], version: "1.0.0" }));
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mortise-harness-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test("a bundled harness runs from its own folder", async () => {
  await writeFile(join(directory, "agent.cjs"), "");
  const bundled: HarnessAdapter = { ...base, runtime: { kind: "bundled", probe: "agent.cjs" } };
  const runtime = await ensureRuntime(bundled, { folder: directory });
  expect(runtime).toEqual({ directory, isFresh: false, python: "" });
});

test("a bundled harness whose program is missing is named", async () => {
  const bundled: HarnessAdapter = { ...base, runtime: { kind: "bundled", probe: "agent.cjs" } };
  await expect(ensureRuntime(bundled, { folder: directory })).rejects.toMatchObject({
    code: "MORTISE_HARNESS_RUNTIME",
    message: expect.stringContaining("agent 1.0.0 cannot be obtained: it has no agent.cjs"),
  });
});

test("a runtime in the cache is used as it is, and gets the adapter's programs anew", async () => {
  const place = join(directory, "cache", "harnesses", "agent", "1.0.0");
  await mkdir(place, { recursive: true });
  await writeFile(join(place, "probe.js"), "");
  await writeFile(join(directory, "run.py"), "print(1)\n");
  const npm: HarnessAdapter = {
    ...base,
    programs: ["run.py"],
    runtime: { kind: "npm", packages: { agent: "1.0.0" }, probe: "probe.js" },
  };
  const runtime = await ensureRuntime(npm, { folder: directory, cacheDirectory: join(directory, "cache") });
  expect(runtime).toEqual({ directory: place, isFresh: false, python: "" });
  expect((await readdir(place)).sort()).toEqual(["probe.js", "run.py"]);
});

test("an installation that fails leaves nothing behind", { timeout: 300_000 }, async () => {
  const cacheDirectory = join(directory, "cache");
  const npm: HarnessAdapter = {
    ...base,
    // A path that does not exist is refused by npm without asking a registry.
    runtime: { kind: "npm", packages: { agent: `file:${join(directory, "absent")}` }, probe: "probe.js" },
  };
  await expect(ensureRuntime(npm, { folder: directory, cacheDirectory })).rejects.toMatchObject({
    code: "MORTISE_HARNESS_RUNTIME",
  });
  expect(await readdir(join(cacheDirectory, "harnesses", "agent"))).toEqual([]);
});
