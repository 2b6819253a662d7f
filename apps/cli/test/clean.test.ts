/** `mortise clean` on a site: what it says and what it leaves alone. Uses dist. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const base = mkdtempSync(join(tmpdir(), "mortise-cli-clean-"));
const site = join(base, "site.toml");
const state = join(base, "state/sandbox-manager/process");
afterAll(() => rmSync(base, { recursive: true, force: true }));

function mortise(...args: string[]) {
  return spawnSync(process.execPath, [MAIN, "clean", "--site", site, ...args], { encoding: "utf8" });
}

test("says what would go, then removes it, and never what is young or somebody's", () => {
  writeFileSync(
    site,
    `nats.url = "nats://127.0.0.1:1"\nidentity.directory = "${base}"\nstate.directory = "${join(base, "state")}"\ntasks.directory = "${base}"\n`,
  );
  for (const [name, days] of [
    ["old", 9],
    ["young", 1],
  ] as const) {
    const place = join(state, "trees", name);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, "file"), Buffer.alloc(8192));
    const at = Date.now() / 1000 - days * 86_400;
    utimesSync(place, at, at);
  }
  mkdirSync(join(state, "run/left/groups"), { recursive: true });
  const checkpoint = join(base, "state/trainer/checkpoint");
  mkdirSync(checkpoint, { recursive: true });

  expect(mortise("--dry-run").stdout).toContain("1 directories to remove; cache entries: 1 (");
  expect(existsSync(join(state, "run/left"))).toBe(true);

  const { schema, freedBytes, places } = JSON.parse(mortise("--json").stdout);
  expect(schema).toBe(1);
  expect(freedBytes).toBeGreaterThanOrEqual(8192);
  expect(places).toMatchObject([
    {
      backend: "process",
      state: "cleaned",
      leftovers: { directories: 1 },
      removed: { entries: 1 },
      kept: { entries: 1 },
    },
  ]);
  expect(existsSync(join(state, "trees/old"))).toBe(false);
  expect(existsSync(join(state, "trees/young"))).toBe(true);
  expect(existsSync(join(state, "run/left"))).toBe(false);
  expect(existsSync(checkpoint)).toBe(true);
  expect(mortise().stdout).toContain("nothing left behind");
  expect(mortise("--older-than", "soon")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("--older-than"),
  });
});
