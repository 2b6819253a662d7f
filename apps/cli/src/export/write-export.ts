/**
 * Owns writing an export: one file, or a directory with a file a trial. What exists already is never overwritten, and a
 * file appears whole or not at all.
 */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { MortiseError } from "@mortise/contracts";

/** What agents saw and said is nobody else's to read. */
const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

export async function writeFileWhole(path: string, content: string | Uint8Array): Promise<void> {
  await writeWhole(
    path,
    (temporary) => writeFile(join(temporary, "file"), content, { mode: FILE_MODE }),
    "file",
  );
}

/** @param files by name; names may not leave the directory */
export async function writeDirectoryWhole(
  path: string,
  files: Iterable<readonly [name: string, content: string]>,
): Promise<void> {
  await writeWhole(
    path,
    async (temporary) => {
      await mkdir(join(temporary, "directory"), { mode: DIRECTORY_MODE });
      for (const [name, content] of files)
        await writeFile(join(temporary, "directory", name), content, { mode: FILE_MODE });
    },
    "directory",
  );
}

async function writeWhole(
  path: string,
  write: (temporary: string) => Promise<void>,
  name: string,
): Promise<void> {
  refuseExisting(path);
  await mkdir(dirname(path), { recursive: true });
  const temporary = await mkdtemp(join(dirname(path), ".mortise-export-"));
  try {
    await write(temporary);
    refuseExisting(path);
    await rename(join(temporary, name), path);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

export function refuseExisting(path: string): void {
  if (!existsSync(path)) return;
  throw new MortiseError({
    code: "MORTISE_OPERATOR_USAGE",
    message: `${path} exists.`,
    fix: "Name another place with --out, or remove it.",
    detail: { field: "--out" },
  });
}
