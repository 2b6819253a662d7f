/**
 * Owns starting a child process without copying this one. Node's own spawn forks, which copies the page
 * tables of a large service: about 4 ms of CPU each time here, and more while the copied pages are touched
 * again. `posix_spawn` shares memory with the child until it executes: below 1 ms.
 * Does not build arguments and knows nothing of containers.
 *
 * Node waits only for children it started itself, so the status of ours is left for us to collect.
 */
import { closeSync } from "node:fs";
import net from "node:net";
import { constants as osConstants } from "node:os";
import { callError, libraryOf } from "../../libc.js";

const O_CLOEXEC = 0o2_000_000;
const WNOHANG = 1;
const SPAWN_SETPGROUP = 0x02;
const SPAWN_SETSIGDEF = 0x04;
const SPAWN_SETSIGMASK = 0x08;
/** Larger than `posix_spawnattr_t` and `posix_spawn_file_actions_t` of glibc and musl. */
const ATTRIBUTES_BYTES = 512;
const ACTIONS_BYTES = 256;
const SIGNAL_SET_BYTES = 128;
/** The status is there as soon as the output closed; this covers the instant between. */
const REAP_PAUSE_MS = 2;

const SIGNAL_NAMES = new Map(
  Object.entries(osConstants.signals).map(([name, number]) => [number, name as NodeJS.Signals]),
);

const libc = libraryOf({
  spawn:
    "int posix_spawnp(_Out_ int* pid, const char* file, void* actions, void* attributes, const char** argv, const char** envp)",
  initActions: "int posix_spawn_file_actions_init(void*)",
  addDup: "int posix_spawn_file_actions_adddup2(void*, int, int)",
  addOpen: "int posix_spawn_file_actions_addopen(void*, int, const char*, int, uint32_t)",
  destroyActions: "int posix_spawn_file_actions_destroy(void*)",
  initAttributes: "int posix_spawnattr_init(void*)",
  setFlags: "int posix_spawnattr_setflags(void*, short)",
  setDefaultSignals: "int posix_spawnattr_setsigdefault(void*, void*)",
  setSignalMask: "int posix_spawnattr_setsigmask(void*, void*)",
  pipe2: "int pipe2(_Out_ int* fds, int flags)",
  waitpid: "int waitpid(int pid, _Out_ int* status, int options)",
});

export interface Launch {
  /** Name on PATH or path, and arguments. */
  readonly argv: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string>>;
  /** /dev/null when absent. */
  readonly stdin?: Uint8Array | undefined;
  readonly onStdout: (chunk: Uint8Array) => void;
  readonly onStderr: (chunk: Uint8Array) => void;
}

/** How a launched process ended: one of the two is set. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Launched {
  readonly pid: number;
  /** Settles when the process has ended and its output is read to the end. */
  readonly exit: Promise<Exit>;
}

/** Starts a program with fresh signal handling. Throws when the kernel refuses, naming the errno. */
export function launch(options: Launch): Launched {
  const pipes = { stdout: makePipe(), stderr: makePipe(), stdin: options.stdin && makePipe() };
  const childEnds = [pipes.stdout.write, pipes.stderr.write, ...(pipes.stdin ? [pipes.stdin.read] : [])];
  const parentEnds = [pipes.stdout.read, pipes.stderr.read, ...(pipes.stdin ? [pipes.stdin.write] : [])];
  let pid: number;
  try {
    pid = spawn(options, pipes.stdout.write, pipes.stderr.write, pipes.stdin ? pipes.stdin.read : undefined);
  } catch (error) {
    for (const fd of parentEnds) closeSync(fd);
    throw error;
  } finally {
    for (const fd of childEnds) closeSync(fd);
  }
  if (pipes.stdin) writeAll(pipes.stdin.write, options.stdin!);
  const closed = [readAll(pipes.stdout.read, options.onStdout), readAll(pipes.stderr.read, options.onStderr)];
  return { pid, exit: Promise.all(closed).then(() => reap(pid)) };
}

function spawn(options: Launch, stdout: number, stderr: number, stdin: number | undefined): number {
  const call = libc();
  const actions = Buffer.alloc(ACTIONS_BYTES);
  call.initActions(actions);
  if (stdin === undefined) call.addOpen(actions, 0, "/dev/null", 0, 0);
  else call.addDup(actions, stdin, 0);
  call.addDup(actions, stdout, 1);
  call.addDup(actions, stderr, 2);
  const environment = Object.entries(options.environment).map(([name, value]) => `${name}=${value}`);
  const pid: [number] = [0];
  const argv = [...options.argv, null];
  const errno = call.spawn(pid, options.argv[0], actions, attributes(), argv, [...environment, null]);
  call.destroyActions(actions);
  if (errno !== 0) throw new Error(`${options.argv[0]} cannot be started: errno ${errno}`);
  return pid[0];
}

/**
 * Node ignores SIGPIPE and may block others; neither belongs to the child. It leads a process group of its own:
 * Ctrl-C in a terminal is for the manager to act on, not for every agent to die of.
 */
function attributes(): Buffer {
  const call = libc();
  const made = Buffer.alloc(ATTRIBUTES_BYTES);
  call.initAttributes(made);
  call.setFlags(made, SPAWN_SETPGROUP | SPAWN_SETSIGDEF | SPAWN_SETSIGMASK);
  call.setDefaultSignals(made, Buffer.alloc(SIGNAL_SET_BYTES, 0xff));
  call.setSignalMask(made, Buffer.alloc(SIGNAL_SET_BYTES));
  return made;
}

function makePipe(): { read: number; write: number } {
  const ends: [number, number] = [0, 0];
  if (libc().pipe2(ends, O_CLOEXEC) !== 0) throw callError("pipe2");
  return { read: ends[0], write: ends[1] };
}

function readAll(fd: number, onChunk: (chunk: Uint8Array) => void): Promise<void> {
  const socket = new net.Socket({ fd, readable: true, writable: false });
  socket.on("data", onChunk);
  return new Promise((resolve) => {
    socket.on("error", () => undefined);
    socket.on("close", () => resolve());
  });
}

/** The program may end without reading its input: a broken pipe is no error of ours. */
function writeAll(fd: number, bytes: Uint8Array): void {
  const socket = new net.Socket({ fd, readable: false, writable: true });
  socket.on("error", () => undefined);
  socket.end(bytes);
}

function reap(pid: number): Promise<Exit> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      const status: [number] = [0];
      const found = libc().waitpid(pid, status, WNOHANG);
      if (found === pid) resolve(decode(status[0]));
      else if (found < 0) reject(callError("waitpid"));
      else setTimeout(look, REAP_PAUSE_MS);
    };
    look();
  });
}

/** The layout of a wait status: low seven bits the signal, the next byte the exit code. */
function decode(status: number): Exit {
  const signal = status & 0x7f;
  if (signal === 0) return { code: (status >> 8) & 0xff, signal: null };
  return { code: null, signal: SIGNAL_NAMES.get(signal) ?? "SIGKILL" };
}
