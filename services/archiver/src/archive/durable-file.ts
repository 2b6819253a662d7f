/**
 * Owns making a file appear whole or not at all, and stay after a power cut: temporary name, fsync, rename, fsync of
 * the directory. Does not know what is in it.
 */
import { mkdir, open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { MortiseError } from "@mortise/contracts";

export const PARTIAL_SUFFIX = ".partial";

/** Throws MORTISE_OPERATOR_DISK_FULL when there is no room. */
export async function writeDurably(path: string, bytes: Uint8Array): Promise<void> {
  const partial = path + PARTIAL_SUFFIX;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(partial, "w", 0o600);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(partial, path);
    await syncDirectory(dirname(path));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOSPC") throw cause;
    throw new MortiseError({
      code: "MORTISE_OPERATOR_DISK_FULL",
      message: `${path}: ${bytes.length} bytes do not fit.`,
      detail: { path },
      cause,
    });
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
