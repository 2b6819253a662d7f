/**
 * Owns the few Linux system calls Node does not offer: mounts, namespaces, sockets inside a namespace,
 * extended attributes. Each is one call on the calling thread, without a child process.
 * Does not decide when they are used.
 */
import { closeSync, openSync } from "node:fs";
import { type Call, type CallError, checked, libraryOf } from "../../libc.js";

export const MNT_DETACH = 2;
export const MS_RDONLY = 1;
export const MS_NOSUID = 2;
export const MS_NODEV = 4;
export const MS_MOVE = 1 << 13;
export const MS_PRIVATE = 1 << 18;

const CLONE_NEWNET = 0x4000_0000;
const SIOCSIFFLAGS = 0x8914;
const IFF_UP = 1;
const AF_INET = 2;
const SOCK_STREAM_CLOEXEC = 1 | 0o2_000_000;
/** Size of `struct ifreq` on 64-bit Linux. */
const IFREQ_BYTES = 40;

const libc = libraryOf({
  mount: "int mount(const char*, const char*, const char*, unsigned long, const char*)",
  umount2: "int umount2(const char*, int)",
  unshare: "int unshare(int)",
  setns: "int setns(int, int)",
  socket: "int socket(int, int, int)",
  ioctl: "int ioctl(int, unsigned long, void*)",
  bind: "int bind(int, void*, uint32_t)",
  listen: "int listen(int, int)",
  lgetxattr: "long lgetxattr(const char*, const char*, void*, size_t)",
});

function check(name: keyof ReturnType<typeof libc>, ...parameters: unknown[]): number {
  return checked(name, libc()[name](...parameters));
}

export function mount(source: string, target: string, type: string, flags: number, data: string): void {
  check("mount", source, target, type, flags, data);
}

/** Mounts a mounted tree elsewhere. Precondition: its parent mount is private. */
export function moveMount(from: string, to: string): void {
  check("mount", from, to, null, MS_MOVE, null);
}

export function makePrivate(target: string): void {
  check("mount", "none", target, null, MS_PRIVATE, null);
}

/** Detaches a mount at once, whoever still uses it. False if nothing is mounted there. */
export function unmount(target: string): boolean {
  try {
    check("umount2", target, MNT_DETACH);
    return true;
  } catch (error) {
    const { code } = error as CallError;
    if (code === "ENOENT" || code === "EINVAL") return false;
    throw error;
  }
}

/**
 * As `unmount`, on a worker thread: the kernel lets the caller wait for a grace period, several milliseconds in
 * which this process would answer nobody. Mounts inside the target go with it.
 */
export function unmountInBackground(target: string): Promise<void> {
  const umount2 = libc().umount2 as Call & { async: (...parameters: unknown[]) => void };
  return new Promise((resolve, reject) => {
    umount2.async(target, MNT_DETACH, (error: unknown, result: number) => {
      if (error === null && result === 0) return resolve();
      try {
        // The worker's errno is out of reach; asking again here tells why.
        unmount(target);
        resolve();
      } catch (cause) {
        reject(cause);
      }
    });
  });
}

/** Whether an overlay directory hides everything below the same path in lower layers. */
export function isOpaque(directory: string): boolean {
  const value = Buffer.alloc(1);
  return libc().lgetxattr(directory, "trusted.overlay.opaque", value, 1) === 1 && value.toString() === "y";
}

/** Runs `fn` with the calling thread in another network namespace, and always goes back. */
function inNamespace<T>(enter: () => void, fn: () => T): T {
  const home = openSync("/proc/thread-self/ns/net", "r");
  enter();
  try {
    return fn();
  } finally {
    // A main thread left in a sandbox's namespace would open every later socket there: there is no way on.
    if (libc().setns(home, CLONE_NEWNET) !== 0) process.abort();
    closeSync(home);
  }
}

/** A new network namespace with loopback up. It lives as long as the returned descriptor or a process in it. */
export function createNetworkNamespace<T>(inside: () => T): { namespaceFd: number; value: T } {
  return inNamespace(
    () => check("unshare", CLONE_NEWNET),
    () => {
      raiseLoopback();
      const namespaceFd = openSync("/proc/thread-self/ns/net", "r");
      try {
        return { namespaceFd, value: inside() };
      } catch (error) {
        closeSync(namespaceFd);
        throw error;
      }
    },
  );
}

/** Runs `fn` in the namespace a descriptor or `/proc/<pid>/ns/net` names. */
export function withinNetworkNamespace<T>(namespaceFd: number, fn: () => T): T {
  return inNamespace(() => check("setns", namespaceFd, CLONE_NEWNET), fn);
}

function raiseLoopback(): void {
  const fd = check("socket", AF_INET, SOCK_STREAM_CLOEXEC, 0);
  try {
    const request = Buffer.alloc(IFREQ_BYTES);
    request.write("lo", "latin1");
    request.writeInt16LE(IFF_UP, 16);
    check("ioctl", fd, SIOCSIFFLAGS, request);
  } finally {
    closeSync(fd);
  }
}

/** A listening TCP socket on 127.0.0.1 of the thread's current network namespace. */
export function listenOnLoopback(port: number, backlog: number): number {
  const fd = check("socket", AF_INET, SOCK_STREAM_CLOEXEC, 0);
  try {
    const address = Buffer.alloc(16);
    address.writeUInt16LE(AF_INET, 0);
    address.writeUInt16BE(port, 2);
    address.set([127, 0, 0, 1], 4);
    check("bind", fd, address, address.byteLength);
    check("listen", fd, backlog);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}
