/**
 * Every harness with an adapter through every standard case, by the command people use. A runtime that cannot be
 * obtained here is a skipped test that says so, never a passed one.
 * MORTISE_CONFORMANCE names the harnesses to run, separated by commas; all when absent.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { HARNESSES } from "../../harnesses/index.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const program = join(root, "apps/cli/dist/main.js");
const asked = process.env.MORTISE_CONFORMANCE?.split(",");
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

interface Output {
  readonly error?: { readonly code: string; readonly message: string };
  readonly results?: readonly { wireApi: string; case: string; outcome: string; reasons: string[] }[];
}

test.for(HARNESSES.map(({ name }) => name))("%s passes its cases", (name, { skip }) => {
  if (asked && !asked.includes(name)) skip("not named in MORTISE_CONFORMANCE");
  const { stdout, stderr } = spawnSync(process.execPath, [program, "conformance", name, "--json"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  const last = stdout.trim().split("\n").at(-1) ?? "";
  if (last === "") throw new Error(`no result: ${stderr}`);
  const { error, results } = JSON.parse(last) as Output;
  if (error?.code === "MORTISE_HARNESS_RUNTIME") skip(error.message);
  if (error) throw new Error(error.message);
  const failed = results!.filter(({ outcome }) => outcome === "fail");
  expect(failed.map((one) => [one.wireApi, one.case, ...one.reasons])).toEqual([]);
  expect(results!.some(({ outcome }) => outcome === "pass")).toBe(true);
});
