/**
 * Owns git directories made here (G2): an empty one, and one through which git reads the objects of an image. Links
 * are set to the image's object files one by one, each after a look that it is a plain file, so neither links nor
 * `info/alternates` of the image lead git anywhere else. Does not run git.
 */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { RootDirectory } from "../root-directory.js";

const LOOSE_DIRECTORY = /^[0-9a-f]{2}$/;
const LOOSE_NAME = /^(?:[0-9a-f]{38}|[0-9a-f]{62})$/;
const PACK_NAME = /^pack-[0-9a-f]{40,64}\.(?:pack|idx)$/;

export type ObjectFormat = "sha1" | "sha256";

/** One key of a configuration, read as text: git itself never sees the image's file. */
export function objectFormatOf(config: string): ObjectFormat {
  return /^\s*objectformat\s*=\s*"?sha256/im.test(config) ? "sha256" : "sha1";
}

/** An empty repository without a commit. @param directory must not exist */
export function makeRepository(directory: string, format: ObjectFormat = "sha1"): void {
  for (const part of ["objects/pack", "objects/info", "refs/heads", "info"])
    mkdirSync(path.join(directory, part), { recursive: true });
  writeFileSync(path.join(directory, "HEAD"), "ref: refs/heads/main\n");
  const extension = format === "sha1" ? "" : "[extensions]\n\tobjectFormat = sha256\n";
  writeFileSync(
    path.join(directory, "config"),
    `[core]\n\trepositoryFormatVersion = ${format === "sha1" ? 0 : 1}\n\tfileMode = true\n\tbare = false\n${extension}`,
  );
}

/**
 * Makes directories of objects of the image visible in a repository made here. The first become its own, the others
 * lie beside it and are named by an alternates file of ours.
 */
export function linkObjects(root: RootDirectory, objects: readonly string[], repository: string): void {
  const borrowed = objects.slice(1).map((_, i) => path.join(repository, `borrowed-${i}`));
  writeFileSync(path.join(repository, "objects/info/alternates"), borrowed.map((at) => `${at}\n`).join(""));
  for (const at of borrowed) mkdirSync(path.join(at, "pack"), { recursive: true });
  [path.join(repository, "objects"), ...borrowed].slice(0, objects.length).forEach((target, i) => {
    linkDirectory(root, objects[i]!, target);
  });
}

function linkDirectory(root: RootDirectory, objects: string, target: string): void {
  for (const entry of root.list(objects).entries) {
    if (entry.kind !== "directory") continue;
    const at = path.join(target, entry.name);
    if (LOOSE_DIRECTORY.test(entry.name)) {
      const { entries } = root.list(entry.path);
      // A directory of nothing but plain files is linked whole, which spares a link for every object.
      if (entries.every(({ kind }) => kind === "file")) symlinkSync(root.host(entry.path), at);
      else {
        mkdirSync(at);
        linkFiles(root, entry.path, at, LOOSE_NAME);
      }
    } else if (entry.name === "pack") linkFiles(root, entry.path, at, PACK_NAME);
  }
}

function linkFiles(root: RootDirectory, directory: string, target: string, name: RegExp): void {
  for (const entry of root.list(directory).entries)
    if (entry.kind === "file" && name.test(entry.name))
      symlinkSync(root.host(entry.path), path.join(target, entry.name));
}
