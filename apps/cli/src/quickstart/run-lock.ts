/**
 * Owns that a run directory has one owner at a time: two starts of the same run would fight over its streams.
 * A lock whose process is gone counts for nothing, so a killed run can be resumed.
 */
import { existsSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";

/** @returns a function that gives the directory up. @throws MORTISE_OPERATOR_RUN_EXISTS when it is taken. */
export async function lockRun(directory: string, runId: string): Promise<() => Promise<void>> {
  const file = join(directory, "owner.pid");
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      await writeFile(file, String(process.pid), { flag: "wx", mode: 0o600 });
      return () => rm(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const owner = Number(readFileSync(file, "utf8"));
    if (isRunning(owner)) {
      throw new MortiseError({
        code: "MORTISE_OPERATOR_RUN_EXISTS",
        message: `Process ${owner} is running ${runId}.`,
        fix: "Wait for it or end it, then resume the run.",
        detail: { field: "runId" },
      });
    }
    await rm(file, { force: true });
  }
  throw new MortiseError({
    code: "MORTISE_OPERATOR_RUN_EXISTS",
    message: `${file} was taken by another start.`,
  });
}

/** A reused pid belongs to something that is not us; on Linux its command line says so. */
function isRunning(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  if (process.platform === "linux") {
    const commandLine = `/proc/${pid}/cmdline`;
    return existsSync(commandLine) && readFileSync(commandLine, "utf8").includes("main.js");
  }
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
