/**
 * Owns git directories made here (G2): an empty one, and one through which git reads the objects of an image. Links
 * are set to the image's object files one by one, each after a look that it is a plain file, so neither links nor
 * `info/alternates` of the image lead git anywhere else. Does not run git.
 */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { nameOf } from "../byte-path.js";
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

/** Makes the objects below one `objects` directory of the image visible in a repository made here. */
export function linkObjects(root: RootDirectory, objects: string, repository: string, prefix: string): void {
  for (const entry of root.list(objects).entries) {
    if (entry.kind !== "directory") continue;
    if (LOOSE_DIRECTORY.test(entry.name)) {
      const target = path.join(repository, "objects", entry.name);
      mkdirSync(target, { recursive: true });
      for (const file of filesOf(root, entry.path, LOOSE_NAME))
        link(root, file, path.join(target, nameOf(file)));
    } else if (entry.name === "pack") {
      // Packs of one repository are told apart by their names, those of several by what stands before.
      const names = filesOf(root, entry.path, PACK_NAME);
      for (const file of names)
        link(
          root,
          file,
          path.join(repository, "objects/pack", nameOf(file).replace("pack-", `pack-${prefix}`)),
        );
    }
  }
}

function filesOf(root: RootDirectory, directory: string, name: RegExp): string[] {
  const found = root
    .list(directory)
    .entries.filter((entry) => entry.kind === "file" && name.test(entry.name));
  return found.map((entry) => entry.path);
}

function link(root: RootDirectory, file: string, target: string): void {
  try {
    symlinkSync(root.host(file), Buffer.from(target));
  } catch (error) {
    // The same object, loose in two repositories that are looked at together.
    if ((error as { code?: string }).code !== "EEXIST") throw error;
  }
}
