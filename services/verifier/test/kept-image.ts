/**
 * Owns images made of this host's own programs that are built once and kept in the system's temporary directory by what
 * they are made of. Says why where one cannot be made.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

export interface KeptImage {
  /** Directory of the root filesystem: the lowest layer of tasks' images. */
  readonly root: string;
  /** A tar of it. */
  readonly layer: string;
}

/**
 * @param parts all it is made of: another list is another image
 * @param fill puts the files below a new root
 */
export function keptImage(
  parts: readonly unknown[],
  fill: (root: string) => void,
): KeptImage | { readonly missing: string } {
  const key = createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16);
  const place = path.join(tmpdir(), "mortise-test-images", key);
  if (!existsSync(place)) {
    const unfinished = `${place}-${process.pid}`;
    try {
      const root = path.join(unfinished, "root");
      mkdirSync(root, { recursive: true });
      fill(root);
      const owned = ["--owner=0", "--group=0", "--numeric-owner"];
      execFileSync("tar", ["-C", root, ...owned, "-cf", path.join(unfinished, "layer.tar"), "."]);
      renameSync(unfinished, place);
    } catch (error) {
      if (!existsSync(place)) return { missing: `building it failed: ${String(error).slice(0, 200)}` };
    } finally {
      rmSync(unfinished, { recursive: true, force: true });
    }
  }
  return { root: path.join(place, "root"), layer: path.join(place, "layer.tar") };
}

/**
 * What the dynamic linker loads for programs and libraries, under the paths it looks at.
 * @param own directory that is looked at before the system's
 */
export function loadedLibraries(programs: readonly string[], own?: string): string[] {
  const { stdout } = spawnSync("ldd", [...programs], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    ...(own === undefined ? {} : { env: { ...process.env, LD_LIBRARY_PATH: own } }),
  });
  return [
    ...new Set([...stdout.matchAll(/(?:=>\s*|^\s*)(\/\S+)\s+\(0x/gm)].map((match) => match[1]!)),
  ].sort();
}
