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
import { Pace } from "../patch/pace.js";
import { isContainedPath } from "../patch/patch.js";
import { readWithoutFollowing, utf8Name } from "../patch/snapshot.js";
import { packTar, type TarMember, unpackTar } from "../patch/tar.js";

/** Of one archive: it is made and read in memory. */
export const MAX_TAR_BYTES = 256 * 1024 * 1024;
export const MAX_TAR_MEMBERS = 100_000;
/** The kernel's limit, with its closing zero. */
export const MAX_HOST_PATH_BYTES = 4095;

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

/**
 * Packs regular files and links below a directory of the sandbox; other kinds are left out, and so are names that are
 * no UTF-8 and paths the kernel would not take from here. Rejects when there is more than `MAX_TAR_BYTES` or
 * `MAX_TAR_MEMBERS` of it, before it is read.
 */
export async function packBelow(root: string, directory: string): Promise<Uint8Array> {
  const top = resolveDirectory(root, directory.slice(1));
  const members: TarMember[] = [];
  const pace = new Pace();
  let leftBytes = MAX_TAR_BYTES;
  let leftMembers = MAX_TAR_MEMBERS;
  const walk = async (relative: string): Promise<void> => {
    const names = readdirSync(path.join(top, relative), { encoding: "buffer" }).map(utf8Name);
    for (const name of names.filter((one) => one !== undefined).sort()) {
      await pace.step();
      const member = relative === "" ? name : `${relative}/${name}`;
      const file = path.join(top, member);
      if (Buffer.byteLength(file) > MAX_HOST_PATH_BYTES) continue;
      const stat = lstatSync(file);
      const mode = stat.mode & 0o777;
      leftMembers -= 1;
      leftBytes -= stat.isFile() ? stat.size : 0;
      if (leftMembers < 0 || leftBytes < 0) throw new Error(`${directory} holds too much to be packed`);
      if (stat.isDirectory()) {
        members.push({ name: member, kind: "directory", mode });
        await walk(member);
      } else if (stat.isSymbolicLink()) {
        members.push({ name: member, kind: "symlink", mode, target: readlinkSync(file) });
      } else if (stat.isFile()) {
        members.push({ name: member, kind: "file", mode, content: readWithoutFollowing(file) });
      }
    }
  };
  await walk("");
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
