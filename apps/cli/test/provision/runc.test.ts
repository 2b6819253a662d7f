import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { INSECURE_NOTE, provisionSandboxRuntime } from "../../src/provision/runc.js";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mortise-runc-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** A program that answers any question with success, or with failure. */
async function fakeProgram(place: string, exitCode = 0): Promise<string> {
  const file = join(directory, place);
  await mkdir(join(file, ".."), { recursive: true });
  await writeFile(file, `#!/bin/sh\necho "fake"\nexit ${exitCode}\n`);
  await chmod(file, 0o755);
  return file;
}
const find = (isRoot: boolean) =>
  provisionSandboxRuntime({
    cacheDirectory: join(directory, "cache"),
    environment: { PATH: join(directory, "bin") },
    isRoot,
    platform: "linux",
  });

describe("the sandbox runtime", () => {
  test("is runc from PATH for root on Linux", async () => {
    const runc = await fakeProgram("bin/runc");
    expect(await find(true)).toEqual({ backend: "runc", runc, notes: [] });
  });
  test("is runc from the cache when the one on PATH does not run", async () => {
    await fakeProgram("bin/runc", 1);
    const cached = await fakeProgram("cache/runc/runc");
    const found = await find(true);
    expect(found).toMatchObject({ backend: "runc", runc: cached });
    expect(found.notes[0]).toContain("does not run");
  });
  test("is Docker without root, when its engine answers", async () => {
    await fakeProgram("bin/docker");
    expect(await find(false)).toMatchObject({
      backend: "docker",
      notes: [expect.stringContaining("needs root")],
    });
  });
  test("is plain processes otherwise, and says that they are insecure", async () => {
    await fakeProgram("bin/docker", 1);
    const found = await find(false);
    expect(found.backend).toBe("process");
    expect(found.notes.at(-1)).toBe(INSECURE_NOTE);
  });
});

const network = process.env.MORTISE_TEST_NETWORK === "1";
if (!network) console.log("skipped: a real download of runc (set MORTISE_TEST_NETWORK=1 to run it)");
describe.skipIf(!network || process.getuid?.() !== 0)("without runc on the machine", () => {
  test("Debian's package is unpacked into the cache", { timeout: 300_000 }, async () => {
    const options = { cacheDirectory: directory, platform: "linux" as const, isRoot: true };
    // The first search sees no PATH, so runc comes from the package; the tools to get it are on the real one.
    const found = await provisionSandboxRuntime({ ...options, environment: { PATH: "" } });
    expect(found).toMatchObject({ backend: "runc", runc: join(directory, "runc", "runc") });
    expect((await provisionSandboxRuntime({ ...options, environment: { PATH: "" } })).notes).toEqual([]);
  });
});
