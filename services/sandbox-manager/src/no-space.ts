/**
 * Owns telling a full disk from every other failure of a file, wherever it was noticed. The sandbox-manager needs space
 * to prepare anything; what was half written is removed by whoever wrote it.
 */
import { statfsSync } from "node:fs";
import { MortiseError } from "@mortise/contracts";

const CODES = new Set(["ENOSPC", "EDQUOT"]);

/** Whether the system, asked to write, said that there is no room. */
export function isNoSpace(error: unknown): boolean {
  return CODES.has((error as { code?: string } | null | undefined)?.code ?? "");
}

/**
 * What `work` returns. Rejects with MORTISE_SANDBOX_NO_SPACE where it was the disk, with how much of it is free; with
 * what it rejected with otherwise.
 * @param directory on the file system that is written to
 */
export async function sayingNoSpace<T>(directory: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isNoSpace(error) ? noSpace(directory, error as Error) : error;
  }
}

/** @param directory on the file system that is full */
export function noSpace(directory: string, cause: Error): MortiseError {
  return new MortiseError({
    code: "MORTISE_SANDBOX_NO_SPACE",
    message: `${directory}: ${cause.message}; ${freeIn(directory)}.`,
    cause,
  });
}

function freeIn(directory: string): string {
  try {
    const { bavail, bsize, ffree } = statfsSync(directory);
    return `${Math.floor((bavail * bsize) / 2 ** 20)} MiB and ${ffree} inodes are free`;
  } catch {
    return "how much is free cannot be told";
  }
}
