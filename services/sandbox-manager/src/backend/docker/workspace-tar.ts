/**
 * Owns a stored tree as the archive that puts it into a container: below its place, owned by the agent. Directories on
 * the way there are not in it; they stay as the image has them.
 */
import { readFileSync, readlinkSync } from "node:fs";
import path from "node:path";
import { packTar, type TarMember } from "../../patch/tar.js";
import { SANDBOX_UID, type Tree } from "../types.js";

/** To be unpacked at `/`. */
export function workspaceTar(
  tree: Tree & { readonly directory: string },
  workdir: string,
): Promise<Uint8Array> {
  const top = workdir.slice(1);
  const directories = new Set([top]);
  const leaves = [...tree.entries.values()].map((entry): TarMember => {
    const name = `${top}/${entry.path}`;
    for (let end = name.indexOf("/", top.length + 1); end > 0; end = name.indexOf("/", end + 1))
      directories.add(name.slice(0, end));
    const file = path.join(tree.directory, entry.path);
    const body = entry.kind === "symlink" ? { target: readlinkSync(file) } : { content: readFileSync(file) };
    return { name, kind: entry.kind, mode: entry.mode, ...body };
  });
  const parents = [...directories].sort().map((name) => ({ name, kind: "directory" as const, mode: 0o755 }));
  return packTar([...parents, ...leaves], SANDBOX_UID);
}
