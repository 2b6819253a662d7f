/** One owner of a directory at a time, told by process and birth. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readOwner, takeOwnership } from "../../src/site/owner-lock.js";

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "mortise-owner-"));
  file = join(directory, "owner.json");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const refuse = () => new MortiseError({ code: "MORTISE_OPERATOR_SITE_UP", message: "taken" });

test("a live owner keeps it, and gives it up", async () => {
  const mine = await takeOwnership(file, refuse);
  expect(mine.hadDied).toBe(false);
  await expect(takeOwnership(file, refuse)).rejects.toMatchObject({ code: "MORTISE_OPERATOR_SITE_UP" });
  await mine.markReady();
  expect(await readOwner(file)).toMatchObject({
    isRunning: true,
    owner: { pid: process.pid, isReady: true },
  });
  await mine.release();
  expect(existsSync(file)).toBe(false);
  await (await takeOwnership(file, refuse)).release();
});

test("of several at once one gets it", async () => {
  const asked = await Promise.allSettled(Array.from({ length: 8 }, () => takeOwnership(file, refuse)));
  expect(asked.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
});

test("a dead owner is replaced, and it is told", async () => {
  const child = spawn("true");
  await new Promise((resolve) => child.once("exit", resolve));
  writeFileSync(file, JSON.stringify({ pid: child.pid, birth: null, since: "then", isReady: true }));
  expect(await readOwner(file)).toMatchObject({ isRunning: false });
  const mine = await takeOwnership(file, refuse);
  expect(mine.hadDied).toBe(true);
  await mine.release();
});

test.runIf(process.platform === "linux")("a number given to another process counts for nothing", async () => {
  const mine = await takeOwnership(file, refuse);
  const record = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ ...record, birth: `${record.birth}1` }));
  expect(await readOwner(file)).toMatchObject({ isRunning: false });
  await (await takeOwnership(file, refuse)).release();
  await mine.release();
});

test("half a record owns nothing", async () => {
  writeFileSync(file, '{"pid": 1');
  expect(await readOwner(file)).toBeUndefined();
  expect((await takeOwnership(file, refuse)).hadDied).toBe(true);
});
