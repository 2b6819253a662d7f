/**
 * Owns taking a harness's own transcript out of a sandbox that has been quiesced: which files, how much of them,
 * in which form. Does not read what is in them and does not store it.
 *
 * What lies there was written by an agent: files are taken by name and size only, links are not.
 */
import path from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { MortiseError } from "@mortise/contracts";
import type { Sandbox } from "../backend/types.js";
import { packTar, type TarFound, unpackTar } from "../patch/tar.js";

/** Of all files together, before compression. Transcripts of long trials are a few MiB. */
export const MAX_TRANSCRIPT_BYTES = 32 * 1024 * 1024;
/** A home may hold much that is no transcript beside it. */
const MAX_READ_BYTES = 256 * 1024 * 1024;

export interface Transcript {
  /** A gzipped tar of the files, by their names below the home, sorted. */
  readonly archive: Uint8Array;
  readonly nFiles: number;
  /** Whether files were left out because there was too much. */
  readonly isTruncated: boolean;
}

/** Undefined when there is none. `globs` are relative to `home`. */
export async function takeTranscript(
  sandbox: Pick<Sandbox, "getTar">,
  home: string,
  globs: readonly string[],
): Promise<Transcript | undefined> {
  const found = new Map<string, Uint8Array>();
  for (const directory of new Set(globs.map(fixedPart)))
    for (const file of await filesBelow(sandbox, path.posix.join(home, directory))) {
      const name = path.posix.join(directory, file.name);
      if (globs.some((glob) => path.posix.matchesGlob(name, glob))) found.set(name, file.content);
    }
  if (found.size === 0) return undefined;
  const names = [...found.keys()].sort();
  const kept: string[] = [];
  let bytes = 0;
  for (const name of names) {
    const size = found.get(name)!.byteLength;
    if (bytes + size > MAX_TRANSCRIPT_BYTES) continue;
    bytes += size;
    kept.push(name);
  }
  const members = kept.map((name) => ({
    name,
    kind: "file" as const,
    mode: 0o644,
    content: found.get(name)!,
  }));
  const archive = await promisify(gzip)(await packTar(members));
  return { archive, nFiles: kept.length, isTruncated: kept.length < names.length };
}

/** The directories a pattern names before its first place-holder. */
function fixedPart(glob: string): string {
  const parts = path.posix.dirname(glob).split("/");
  const end = parts.findIndex((part) => /[*?[{]/.test(part));
  return (end < 0 ? parts : parts.slice(0, end)).join("/") || ".";
}

/** A harness that wrote nothing has made no directory either. */
async function filesBelow(sandbox: Pick<Sandbox, "getTar">, directory: string): Promise<TarFound[]> {
  try {
    const members = await unpackTar(await sandbox.getTar(directory), MAX_READ_BYTES);
    return members.filter(({ type }) => type === "file");
  } catch (error) {
    if (error instanceof MortiseError && error.code === "MORTISE_SANDBOX_SETUP") return [];
    throw error;
  }
}
