/**
 * Owns showing a mounted directory of another mount namespace at a path of this one: what an engine's storage driver
 * mounts is in the engine's namespace, and a path through `/proc/<pid>/root` is resolved by no program but the kernel.
 *
 * F1  The calling thread is in the other namespace for one call, between two others, and never while anything waits.
 */
import { closeSync, mkdirSync, openSync, rmdirSync } from "node:fs";
import { checked, libraryOf } from "../../../libc.js";
import { unmount } from "../../runc/syscalls.js";

/** The same on every architecture. */
const SYS_OPEN_TREE = 428;
const SYS_MOVE_MOUNT = 429;
const AT_FDCWD = -100;
const OPEN_TREE_CLONE = 1;
const OPEN_TREE_CLOEXEC = 0o2_000_000;
const MOVE_MOUNT_F_EMPTY_PATH = 4;
const CLONE_NEWNS = 0x2_0000;
const CLONE_FS = 0x200;

const libc = libraryOf({
  unshare: "int unshare(int)",
  setns: "int setns(int, int)",
  openTree: "long syscall(long, int, const char*, uint32_t)",
  moveMount: "long syscall(long, int, const char*, int, const char*, uint32_t)",
});

/**
 * Shows it while `use` runs.
 * @param pid any process of the other namespace
 * @param directory as that namespace names it; what is mounted below it is not shown
 * @param at an absolute path of this one, which must not exist
 */
export async function withForeignDirectory<T>(
  { pid, directory, at }: { pid: number; directory: string; at: string },
  use: () => Promise<T>,
): Promise<T> {
  const tree = detached(pid, directory);
  mkdirSync(at, { mode: 0o700 });
  try {
    checked("move_mount", libc().moveMount(SYS_MOVE_MOUNT, tree, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH));
    return await use();
  } finally {
    closeSync(tree);
    unmount(at);
    rmdirSync(at);
  }
}

/** A descriptor of a mount of its own, not yet anywhere. */
function detached(pid: number, directory: string): number {
  const [own, other] = [openSync("/proc/thread-self/ns/mnt", "r"), openSync(`/proc/${pid}/ns/mnt`, "r")];
  try {
    // A thread that shares its current directory with others may not go.
    checked("unshare", libc().unshare(CLONE_FS));
    checked("setns", libc().setns(other, CLONE_NEWNS));
    try {
      const flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
      return checked("open_tree", libc().openTree(SYS_OPEN_TREE, AT_FDCWD, directory, flags));
    } finally {
      checked("setns", libc().setns(own, CLONE_NEWNS));
    }
  } finally {
    closeSync(own);
    closeSync(other);
  }
}
