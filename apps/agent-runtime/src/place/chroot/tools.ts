/**
 * Owns which programs of this machine a changed root is entered with, and the command line that does it. With the
 * right to mount: namespaces of mounts and processes of its own, trees mounted read-only. Without: the root alone, and
 * trees are copied into it. Starts nothing but the question whether mounting works.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";

const PROGRAM_DIRECTORIES = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
/** What root inside keeps: owning files, and what changing user and root takes. */
const KEPT_CAPABILITIES = "-all,+chown,+dac_override,+fowner,+fsetid,+setuid,+setgid,+sys_chroot";

/** $1 root, $2 mount, $3 number of trees, then source and target of each, then the command. */
const MOUNTING = `set -e
root=$1 mount=$2 n=$3
shift 3
while [ "$n" -gt 0 ]; do
  "$mount" --bind "$1" "$root$2"
  "$mount" -o remount,bind,ro "$root$2"
  shift 2
  n=$((n - 1))
done
"$mount" -t proc -o nosuid,nodev,noexec proc "$root/proc"
exec "$@"`;

export interface TreeMount {
  readonly source: string;
  readonly target: string;
}

export interface Entry {
  readonly root: string;
  readonly cwd: string;
  readonly uid: number;
  readonly trees: readonly TreeMount[];
  readonly argv: readonly [string, ...string[]];
}

export interface RootTools {
  readonly canMount: boolean;
  commandLine(entry: Entry): string[];
}

/** @throws MortiseError MORTISE_SANDBOX_BACKEND where this process cannot change its root */
export function rootTools(): RootTools {
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    throw unable("a flattened root is made and entered by root on Linux only; this process is not root");
  const [unshare, nsenter, setpriv, mount, sh] = ["unshare", "nsenter", "setpriv", "mount", "sh"].map(
    programNamed,
  ) as [string, string, string, string, string];
  // Of no namespace at all: where a container's filter forbids `unshare`, changing the root is still allowed.
  const enter = spawnSync(nsenter, ["--root=/", "--wd=/", "true"], { encoding: "utf8" });
  if (enter.status !== 0) throw unable(`changing the root is not allowed: ${enter.stderr.trim()}`);
  const namespaces = ["--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--propagation", "private"];
  const canMount = spawnSync(unshare, [...namespaces, mount, "-t", "proc", "proc", "/proc"]).status === 0;
  return {
    canMount,
    commandLine({ root, cwd, uid, trees, argv }) {
      const inside = [
        ...[setpriv, "--no-new-privs", `--bounding-set=${KEPT_CAPABILITIES}`],
        ...[nsenter, `--root=${root}`, `--wd=${root}${cwd}`, `--setgid=${uid}`, `--setuid=${uid}`, "--"],
        ...argv,
      ];
      if (!canMount) return inside;
      const places = trees.flatMap(({ source, target }) => [source, target]);
      return [
        ...[unshare, ...namespaces, "--", sh, "-c", MOUNTING, "sh"],
        ...[root, mount, String(trees.length), ...places],
        ...inside,
      ];
    },
  };
}

function programNamed(name: string): string {
  const found = PROGRAM_DIRECTORIES.map((directory) => path.join(directory, name)).find(existsSync);
  if (found === undefined)
    throw unable(`this machine has no \`${name}\` in ${PROGRAM_DIRECTORIES.join(", ")}`);
  return found;
}

function unable(message: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_SANDBOX_BACKEND",
    message: `${message}.`,
    fix: "Run the agent runtime as root, with util-linux, and with the right to change the root (CAP_SYS_CHROOT).",
  });
}
