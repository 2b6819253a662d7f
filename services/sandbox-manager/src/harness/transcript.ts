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
  /** Whether files were left out because there was too much, or could not be read. */
  readonly isTruncated: boolean;
}

export interface TranscriptPlace {
  readonly home: string;
  /** Relative to the home. */
  readonly globs: readonly string[];
  /** Blotted out wherever they stand: a harness may write down its own environment. */
  readonly secrets: readonly string[];
}

/** Undefined when there is none. */
export async function takeTranscript(
  sandbox: Pick<Sandbox, "getTar">,
  { home, globs, secrets }: TranscriptPlace,
): Promise<Transcript | undefined> {
  const found = new Map<string, Uint8Array>();
  let isWhole = true;
  for (const directory of new Set(globs.map(fixedPart))) {
    const files = await filesBelow(sandbox, path.posix.join(home, directory));
    isWhole &&= files !== undefined;
    for (const file of files ?? []) {
      const name = path.posix.join(directory, file.name);
      if (globs.some((glob) => path.posix.matchesGlob(name, glob))) found.set(name, file.content);
    }
  }
  if (found.size === 0 && isWhole) return undefined;
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
    content: blotted(found.get(name)!, secrets),
  }));
  const archive = await promisify(gzip)(await packTar(members));
  return { archive, nFiles: kept.length, isTruncated: !isWhole || kept.length < names.length };
}

/** In place, byte for byte: sizes and what lies around stay, whatever the format. */
function blotted(content: Uint8Array, secrets: readonly string[]): Uint8Array {
  const bytes = Buffer.from(content);
  for (const secret of secrets.filter((text) => text !== "")) {
    const length = Buffer.byteLength(secret);
    for (let at = bytes.indexOf(secret); at >= 0; at = bytes.indexOf(secret, at + length))
      bytes.fill("*", at, at + length);
  }
  return bytes;
}

/** The directories a pattern names before its first place-holder. */
function fixedPart(glob: string): string {
  const parts = path.posix.dirname(glob).split("/");
  const end = parts.findIndex((part) => /[*?[{]/.test(part));
  return (end < 0 ? parts : parts.slice(0, end)).join("/") || ".";
}

/**
 * None where there is no such directory: a harness that wrote nothing has made none. Undefined where it cannot be
 * read: what an agent did to its own transcript must not decide whether its trial counts.
 */
async function filesBelow(
  sandbox: Pick<Sandbox, "getTar">,
  directory: string,
): Promise<TarFound[] | undefined> {
  try {
    const members = await unpackTar(await sandbox.getTar(directory), MAX_READ_BYTES);
    return members.filter(({ type }) => type === "file");
  } catch (error) {
    if (error instanceof MortiseError && error.code === "MORTISE_SANDBOX_LOST") throw error;
    return isAbsence(error) ? [] : undefined;
  }
}

/** In the words of the backends; Docker's engine answers with a status. */
function isAbsence(error: unknown): boolean {
  if (error instanceof MortiseError) return error.code === "MORTISE_SANDBOX_SETUP";
  return (error as { statusCode?: number }).statusCode === 404;
}
