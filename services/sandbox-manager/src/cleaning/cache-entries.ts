/**
 * Owns what the caches of a state directory hold: images, layers and trees, each made again when it is missing. Sizes
 * are what the disk gives back; a file that lies elsewhere too gives back nothing.
 */
import { lstatSync, readdirSync, rmSync, statSync } from "node:fs";
import path from "node:path";

export interface CacheEntry {
  readonly path: string;
  readonly bytes: number;
  /** When it was made, or last read where that is known; epoch ms. */
  readonly usedAtMs: number;
}

/** Below a backend's state directory. Layers have a record beside them that is read whenever they are used. */
const CACHES: readonly { readonly directory: string; readonly record?: string }[] = [
  { directory: "images" },
  { directory: "bases" },
  { directory: "built" },
  { directory: "trees" },
  { directory: "store/layers", record: "layer.json" },
];
const BLOCK_BYTES = 512;

export function cacheEntries(stateDirectory: string): CacheEntry[] {
  return CACHES.flatMap(({ directory, record }) => {
    const place = path.join(stateDirectory, directory);
    return namesIn(place).map((name) => {
      const entry = path.join(place, name);
      return { path: entry, bytes: bytesOf(entry), usedAtMs: usedAt(entry, record) };
    });
  });
}

/** Those that are too old, and of the rest the oldest until what stays is small enough. */
export function dispensable<T extends Pick<CacheEntry, "bytes" | "usedAtMs">>(
  entries: readonly T[],
  { now, maxAgeMs, maxBytes }: { now: number; maxAgeMs: number; maxBytes: number },
): T[] {
  const oldestFirst = entries.toSorted((a, b) => a.usedAtMs - b.usedAtMs);
  let left = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  return oldestFirst.filter(({ bytes, usedAtMs }) => {
    if (now - usedAtMs <= maxAgeMs && left <= maxBytes) return false;
    left -= bytes;
    return true;
  });
}

export function removeEntry(entry: CacheEntry): void {
  rmSync(entry.path, { recursive: true, force: true });
}

function usedAt(entry: string, record: string | undefined): number {
  const { mtimeMs } = lstatSync(entry);
  const read =
    record === undefined ? undefined : statSync(path.join(entry, record), { throwIfNoEntry: false });
  return Math.max(mtimeMs, read?.atimeMs ?? 0);
}

function bytesOf(place: string): number {
  const seen = new Map<number, number>();
  let bytes = 0;
  const visit = (file: string) => {
    const stat = lstatSync(file);
    const nSeen = (seen.get(stat.ino) ?? 0) + 1;
    seen.set(stat.ino, nSeen);
    if (stat.isDirectory()) for (const name of readdirSync(file)) visit(path.join(file, name));
    if (stat.isDirectory() || nSeen === stat.nlink) bytes += stat.blocks * BLOCK_BYTES;
  };
  visit(place);
  return bytes;
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
