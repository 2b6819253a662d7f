/**
 * Owns the system calls that work on a name inside an open directory. Node's own calls take whole paths, which
 * the kernel resolves through whatever links an archive has put there; these take one name in one directory.
 * Loaded once a thread. Does not decide what is created.
 *
 * Names are byte strings (one character a byte). Failed calls throw with `code` as Node's errors have it.
 */
import { callError, checked, libraryOf } from "../../libc.js";
import type { Timestamp } from "../archive/pax.js";

const SYS_OPENAT2 = 437;
const O_RDONLY = 0;
const O_WRONLY = 1;
const O_CREAT = 0o100;
const O_EXCL = 0o200;
const O_DIRECTORY = 0o200_000;
const O_NOFOLLOW = 0o400_000;
const O_CLOEXEC = 0o2_000_000;
const O_PATH = 0o10_000_000;
/** Links and `..` stay below the directory, as after a chroot; links of /proc are refused. */
const RESOLVE_IN_ROOT = 0x10;
const RESOLVE_NO_XDEV = 0x01;
const AT_SYMLINK_NOFOLLOW = 0x100;
const AT_REMOVEDIR = 0x200;
const SEEK_DATA = 3;
const SEEK_HOLE = 4;
const S_IFCHR = 0o020_000;
const S_IFBLK = 0o060_000;
const S_IFIFO = 0o010_000;

const libc = libraryOf({
  openat2: "long syscall(long, int, const void*, void*, size_t)",
  openat: "int openat(int, const void*, int, uint32_t)",
  mkdirat: "int mkdirat(int, const void*, uint32_t)",
  symlinkat: "int symlinkat(const void*, int, const void*)",
  linkat: "int linkat(int, const void*, int, const void*, int)",
  mknodat: "int mknodat(int, const void*, uint32_t, uint64_t)",
  unlinkat: "int unlinkat(int, const void*, int)",
  fchownat: "int fchownat(int, const void*, uint32_t, uint32_t, int)",
  fchmodat: "int fchmodat(int, const void*, uint32_t, int)",
  utimensat: "int utimensat(int, const void*, const void*, int)",
  futimens: "int futimens(int, const void*)",
  lsetxattr: "int lsetxattr(const void*, const void*, const void*, size_t, int)",
  lgetxattr: "long lgetxattr(const void*, const void*, void*, size_t)",
  llistxattr: "long llistxattr(const void*, void*, size_t)",
  close: "int close(int)",
  lseek: "int64_t lseek(int, int64_t, int)",
});

type Name = keyof ReturnType<typeof libc>;

function check(call: Name, ...parameters: unknown[]): number {
  return checked(call, libc()[call](...parameters));
}

/** As `check`, with undefined for one expected error. */
function unless(code: string, call: Name, ...parameters: unknown[]) {
  const result = libc()[call](...parameters);
  if (result >= 0) return result;
  const error = callError(call);
  if (error.code === code) return undefined;
  throw error;
}

function c(name: string): Buffer {
  const bytes = Buffer.allocUnsafe(name.length + 1);
  bytes.write(name, "latin1");
  bytes[name.length] = 0;
  return bytes;
}

export function codeOf(error: unknown): string | undefined {
  return (error as { code?: string }).code;
}

/** Opens a directory below `root`, resolving every component in it as if `root` were `/`. */
export function openDirectoryInRoot(root: number, path: string): number {
  return openBelow(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, RESOLVE_IN_ROOT | RESOLVE_NO_XDEV);
}

/**
 * A descriptor of whatever a path leads to, resolved as if `root` were `/` and mounts included; it cannot be read.
 * Given back with `closePath`: Node watches what its own calls open in a thread, and this is not among it.
 */
export function openPathInRoot(root: number, path: string): number {
  return openBelow(root, path, O_PATH | O_CLOEXEC, RESOLVE_IN_ROOT);
}

export function closePath(fd: number): void {
  check("close", fd);
}

function openBelow(root: number, path: string, flags: number, resolve: number): number {
  const how = Buffer.alloc(24);
  how.writeBigUInt64LE(BigInt(flags), 0);
  how.writeBigUInt64LE(BigInt(resolve), 16);
  const fd = libc().openat2(SYS_OPENAT2, root, c(path === "" ? "." : path), how, how.byteLength);
  return checked("openat2", fd);
}

/** Where the next stored bytes of a file begin, at or after `offset`, or undefined when only a hole follows. */
export function nextData(fd: number, offset: number): number | undefined {
  const found = unless("ENXIO", "lseek", fd, offset, SEEK_DATA);
  return found === undefined ? undefined : Number(found);
}

/** Where the next hole begins; the end of a file is one. */
export function nextHole(fd: number, offset: number): number {
  return Number(check("lseek", fd, offset, SEEK_HOLE));
}

/** Opens the directory of this name itself, never what a link of this name leads to. */
export function openDirectory(parent: number, name: string): number {
  return check("openat", parent, c(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

/** A new file for writing, or undefined when the name is taken, by whatever. */
export function createFile(parent: number, name: string): number | undefined {
  const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  return unless("EEXIST", "openat", parent, c(name), flags, 0o600);
}

/** False when the name is taken. */
export function makeDirectory(parent: number, name: string): boolean {
  return unless("EEXIST", "mkdirat", parent, c(name), 0o700) !== undefined;
}

export function makeSymlink(parent: number, name: string, target: string): boolean {
  return unless("EEXIST", "symlinkat", c(target), parent, c(name)) !== undefined;
}

/** Links the entry itself: a symbolic link is linked, not followed. */
export function makeLink(fromParent: number, fromName: string, parent: number, name: string): boolean {
  return unless("EEXIST", "linkat", fromParent, c(fromName), parent, c(name), 0) !== undefined;
}

export function makeFifo(parent: number, name: string): boolean {
  return unless("EEXIST", "mknodat", parent, c(name), S_IFIFO | 0o600, 0n) !== undefined;
}

export function makeDevice(
  parent: number,
  name: string,
  kind: "character" | "block",
  major: number,
  minor: number,
): boolean {
  const type = kind === "character" ? S_IFCHR : S_IFBLK;
  const [high, low] = [BigInt(major), BigInt(minor)];
  // glibc's makedev: 12 low bits of the major and 8 of the minor in the old places, the rest above.
  const device =
    ((high & 0xfffn) << 8n) | ((high & ~0xfffn) << 32n) | (low & 0xffn) | ((low & ~0xffn) << 12n);
  return unless("EEXIST", "mknodat", parent, c(name), type | 0o600, device) !== undefined;
}

/** The marker by which an overlay hides a lower entry: a character device with number 0:0. */
export function makeWhiteout(parent: number, name: string): boolean {
  return unless("EEXIST", "mknodat", parent, c(name), S_IFCHR, 0n) !== undefined;
}

export function removeName(parent: number, name: string, isDirectory: boolean): void {
  check("unlinkat", parent, c(name), isDirectory ? AT_REMOVEDIR : 0);
}

export function changeOwner(parent: number, name: string, uid: number, gid: number): void {
  check("fchownat", parent, c(name), uid, gid, AT_SYMLINK_NOFOLLOW);
}

/** Precondition: the name is no symbolic link. */
export function changeMode(parent: number, name: string, mode: number): void {
  check("fchmodat", parent, c(name), mode, 0);
}

/** Sets access and modification time of the entry itself. */
export function setTimes(parent: number, name: string, time: Timestamp): void {
  check("utimensat", parent, c(name), timespecs(time), AT_SYMLINK_NOFOLLOW);
}

export function setTimesOf(fd: number, time: Timestamp): void {
  check("futimens", fd, timespecs(time));
}

function timespecs({ seconds, nanoseconds }: Timestamp): Buffer {
  const times = Buffer.allocUnsafe(32);
  for (const at of [0, 16]) {
    times.writeBigInt64LE(BigInt(seconds), at);
    times.writeBigInt64LE(BigInt(nanoseconds), at + 8);
  }
  return times;
}

/** Path of a name in an open directory, for calls that take no descriptor. They must not follow the last part. */
export function pathIn(parent: number, name: string): Buffer {
  return Buffer.from(`/proc/self/fd/${parent}/${name}`, "latin1");
}

/** False when the file system does not keep attributes of this kind. */
export function setXattr(parent: number, name: string, key: string, value: Buffer): boolean {
  const path = c(`/proc/self/fd/${parent}/${name}`);
  return unless("EOPNOTSUPP", "lsetxattr", path, c(key), value, value.byteLength, 0) !== undefined;
}

/** All extended attributes of the entry itself. @param path byte string */
export function readXattrs(path: string): Map<string, Buffer> {
  const list = grown((buffer) => check("llistxattr", c(path), buffer, buffer.byteLength));
  const keys = list.toString("latin1").split("\0").slice(0, -1);
  return new Map(keys.map((key) => [key, readXattr(path, key)]));
}

function readXattr(path: string, key: string): Buffer {
  return grown((buffer) => check("lgetxattr", c(path), c(key), buffer, buffer.byteLength));
}

/** Calls with no room first, which asks the kernel for the length. */
function grown(read: (buffer: Buffer) => number): Buffer {
  const buffer = Buffer.alloc(read(Buffer.alloc(0)));
  return buffer.byteLength === 0 ? buffer : buffer.subarray(0, read(buffer));
}
