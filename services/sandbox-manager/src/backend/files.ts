/**
 * Owns reaching files of an idle sandbox from the host, below its mounted root. Path components are resolved
 * one by one and links are never followed: a link planted by an agent must not lead the host elsewhere.
 * Does not run while a command does; the caller sees to that.
 */
import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { isContainedPath } from "../patch/patch.js";
import { readWithoutFollowing } from "../patch/snapshot.js";
import { packTar, type TarMember, unpackTar } from "../patch/tar.js";

const MAX_TAR_BYTES = 256 * 1024 * 1024;

/** Writes the files, directories and links of a tar below a directory of the sandbox. */
export async function unpackBelow(
  root: string,
  directory: string,
  tar: Uint8Array,
  uid: number,
): Promise<void> {
  const top = resolveDirectory(root, directory.slice(1), uid);
  for (const member of await unpackTar(tar, MAX_TAR_BYTES)) {
    const name = member.name.replace(/^\.\//, "").replace(/\/$/, "");
    if (name === "" || name === ".") continue;
    if (!isContainedPath(name)) throw refused(`archive member ${JSON.stringify(member.name)}`);
    if (member.type === "directory") {
      resolveDirectory(top, name, uid);
      continue;
    }
    const parent = path.dirname(name);
    const file = path.join(parent === "." ? top : resolveDirectory(top, parent, uid), path.basename(name));
    rmSync(file, { recursive: true, force: true });
    if (member.type === "symlink") symlinkSync(member.target, file);
    else if (member.type === "file") {
      writeFileSync(file, member.content, { flag: "wx" });
      chmodSync(file, member.mode & 0o777);
    } else throw refused(`archive member ${JSON.stringify(member.name)} of type ${member.type}`);
    lchownSync(file, uid, uid);
  }
}

/** Packs regular files and links below a directory of the sandbox; other kinds are left out. */
export function packBelow(root: string, directory: string): Promise<Uint8Array> {
  const top = resolveDirectory(root, directory.slice(1));
  const members: TarMember[] = [];
  const walk = (relative: string): void => {
    for (const name of readdirSync(path.join(top, relative)).sort()) {
      const member = relative === "" ? name : `${relative}/${name}`;
      const file = path.join(top, member);
      const stat = lstatSync(file);
      const mode = stat.mode & 0o777;
      if (stat.isDirectory()) {
        members.push({ name: member, kind: "directory", mode });
        walk(member);
      } else if (stat.isSymbolicLink()) {
        members.push({ name: member, kind: "symlink", mode, target: readlinkSync(file) });
      } else if (stat.isFile()) {
        members.push({ name: member, kind: "file", mode, content: readWithoutFollowing(file) });
      }
    }
  };
  walk("");
  return packTar(members);
}

/**
 * The host path of a directory inside, refusing links on the way; made with this owner if `uid` is given.
 * @param relative without a leading slash. Throws MORTISE_SANDBOX_SETUP.
 */
export function resolveDirectory(root: string, relative: string, uid?: number): string {
  let at = root;
  if (relative !== "" && !isContainedPath(relative)) throw refused(JSON.stringify(relative));
  for (const part of relative === "" ? [] : relative.split("/")) {
    at = path.join(at, part);
    const stat = lstatSync(at, { throwIfNoEntry: false });
    if (stat?.isDirectory()) continue;
    if (stat !== undefined || uid === undefined) throw refused(`${relative} is not a directory`);
    mkdirSync(at, { mode: 0o755 });
    chownSync(at, uid, uid);
  }
  return at;
}

function refused(message: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message });
}
