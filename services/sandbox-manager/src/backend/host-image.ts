/**
 * Owns the root filesystem of tasks that name no image: this process's own Node binary, a shell and a few
 * standard programs of the host, with exactly the shared libraries they load. Nothing else of the host is
 * visible. Built once per set of programs.
 * Does not install anything and does not know tasks, harnesses or containers.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { sha256 } from "../patch/patch.js";
import { SANDBOX_UID, WORKSPACE } from "./types.js";

/** Must be there; without them nothing useful runs. */
const REQUIRED_PROGRAMS = ["sh", "cat", "ls", "env", "sleep"] as const;
/** Taken when the host has them; what was found is part of the image's digest. */
const OPTIONAL_PROGRAMS =
  "basename chmod cp cut date diff dirname echo expr false find grep head id ln mkdir mktemp mv printf pwd readlink realpath rm rmdir sed seq sort stat tail tee test touch tr true uname uniq wc which xargs".split(
    " ",
  );
const PROGRAM_DIRECTORIES = ["/usr/bin", "/bin"];
/** Changes when the same programs are laid out in another way, so that an image built before is not taken. */
const LAYOUT = "4\n";
const DIRECTORIES = ["proc", "dev", "etc", "opt/harness", "tests", "usr/bin", "root"];

/** Parts of glibc that programs mounted into a sandbox ask for, beside those this host's programs load. */
const PARTS_OF_GLIBC = "libdl.so.2 libm.so.6 libpthread.so.0 libresolv.so.2 librt.so.1 libutil.so.1".split(
  " ",
);

interface SourceFile {
  /** Absolute path in the image. */
  readonly target: string;
  /** Absolute path on the host, links resolved. */
  readonly source: string;
}

export interface HostImage {
  /** Lower-case hex sha256 over paths and contents. */
  readonly digest: string;
  /** Absolute directory. */
  readonly location: string;
}

/** Builds the image below `root` or finds it built. Rejects with MORTISE_SANDBOX_BACKEND if a program is missing. */
export function prepareHostImage(root: string): HostImage {
  const files = withLibraries(programs());
  const identity = files.map((file) => {
    const stat = statSync(file.source);
    return `${file.target}\0${file.source}\0${stat.size}\0${stat.mtimeMs}\0${stat.ino}\n`;
  });
  const location = path.join(root, sha256(LAYOUT + identity.join("")));
  if (!existsSync(location)) build(files, root, location);
  return { digest: readFileSync(`${location}.digest`, "utf8"), location };
}

function programs(): SourceFile[] {
  const find = (name: string) =>
    PROGRAM_DIRECTORIES.map((directory) => path.join(directory, name)).find((file) => existsSync(file));
  const found: SourceFile[] = [{ target: "/usr/bin/node", source: realpathSync(process.execPath) }];
  for (const name of [...REQUIRED_PROGRAMS, ...OPTIONAL_PROGRAMS]) {
    const file = find(name);
    if (file !== undefined) found.push({ target: `/usr/bin/${name}`, source: realpathSync(file) });
    else if ((REQUIRED_PROGRAMS as readonly string[]).includes(name))
      throw new MortiseError({
        code: "MORTISE_SANDBOX_BACKEND",
        message: `the host has no \`${name}\` in ${PROGRAM_DIRECTORIES.join(" or ")}`,
      });
  }
  return found;
}

/** Adds what the dynamic linker would load for each program, under the very paths it looks at. */
function withLibraries(found: readonly SourceFile[]): SourceFile[] {
  const libraries = dynamicLibraries(found.map(({ source }) => source));
  return [...found, ...libraries.map((target) => ({ target, source: realpathSync(target) }))];
}

/** Absolute paths of what programs load. All are asked about at once: ldd is a shell script, and starting it costs more than its answer. */
export function dynamicLibraries(programs: readonly string[]): string[] {
  const { stdout, error } = spawnSync("ldd", programs, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  if (error !== undefined)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_BACKEND",
      message: `\`ldd\`, which finds shared libraries, cannot be run: ${error.message}`,
    });
  // `name => /path (0x…)`, or `/path (0x…)` for the linker itself; scripts and static programs give no such line.
  const paths = [...stdout.matchAll(/(?:=>\s*|^\s*)(\/\S+)\s+\(0x/gm)].map((match) => match[1]!);
  return [...new Set(paths.flatMap((found) => [found, ...partsBeside(found)]))].sort();
}

function partsBeside(library: string): string[] {
  if (path.basename(library) !== "libc.so.6") return [];
  return PARTS_OF_GLIBC.map((name) => path.join(path.dirname(library), name)).filter((file) =>
    existsSync(file),
  );
}

function build(files: readonly SourceFile[], root: string, finished: string): void {
  const unfinished = path.join(root, `unfinished-${process.pid}`);
  try {
    fill(unfinished, files);
    const digest = sha256(files.map((f) => `${f.target}\0${sha256(readFileSync(f.source))}\n`).join(""));
    writeFileSync(`${finished}.digest`, digest);
    renameSync(unfinished, finished);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    throw error;
  }
}

function fill(unfinished: string, files: readonly SourceFile[]): void {
  rmSync(unfinished, { recursive: true, force: true });
  for (const directory of [...DIRECTORIES, WORKSPACE.slice(1)])
    mkdirSync(path.join(unfinished, directory), { recursive: true, mode: 0o755 });
  mkdirSync(path.join(unfinished, "tmp"));
  // Not through mkdir: the umask would take away that everyone may write there.
  chmodSync(path.join(unfinished, "tmp"), 0o1777);
  symlinkSync("usr/bin", path.join(unfinished, "bin"));
  for (const { target, source } of files) placeFile(source, path.join(unfinished, target));
  writeAccounts(unfinished);
}

/** A hard link shares the page cache with the services' own Node; a copy is made where links cannot reach. */
function placeFile(source: string, target: string): void {
  mkdirSync(path.dirname(target), { recursive: true, mode: 0o755 });
  const isSafeToShare = (statSync(source).mode & 0o6022) === 0;
  try {
    if (!isSafeToShare) throw new Error("setuid or writable by others");
    linkSync(source, target);
  } catch {
    copyFileSync(source, target, constants.COPYFILE_FICLONE);
  }
}

function writeAccounts(image: string): void {
  writeFileSync(
    path.join(image, "etc/passwd"),
    `root:x:0:0::/root:/bin/sh\nagent:x:${SANDBOX_UID}:${SANDBOX_UID}::/tmp:/bin/sh\n`,
  );
  writeFileSync(path.join(image, "etc/group"), `root:x:0:\nagent:x:${SANDBOX_UID}:\n`);
  writeFileSync(path.join(image, "etc/hosts"), "127.0.0.1 localhost\n::1 localhost\n");
  writeFileSync(path.join(image, "etc/resolv.conf"), "");
}
