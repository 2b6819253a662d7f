/**
 * Owns the promise that no supervised process outlives the supervisor, however that one dies.
 *
 * Each process is started by a shell that leaves a watcher beside it and then becomes the process (`exec`), so
 * the supervised pid is the program's own. The watcher reads a pipe that only the supervisor holds open; when
 * it closes, which no kill -9 can prevent, the watcher asks the process to end and later kills it.
 * Everything the process leaves in its process group when it ends is swept by the supervisor.
 */
import { type ChildProcess, spawn } from "node:child_process";

// $1: seconds until SIGTERM after the pipe closed, $2: seconds from then until SIGKILL. The watcher is in the
// process group, so the group's number, which is also the pid it signals, cannot be given to anybody else.
const SCRIPT = `
exec 3<&0
(
  cat <&3 >/dev/null
  sleep "$1"
  kill -s TERM $$
  left=$2
  while [ "$left" -gt 0 ] && kill -s 0 $$; do
    sleep 1
    left=$((left - 1))
  done
  kill -s KILL -- -$$
) >/dev/null 2>&1 &
exec 3<&-
shift 2
exec "$@" </dev/null
`;

export interface GuardedSpawn {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly environment: NodeJS.ProcessEnv;
  /** File descriptors for what the process prints. */
  readonly stdout: number;
  readonly stderr: number;
  /** Seconds after the supervisor's death until SIGTERM, and from then until SIGKILL. */
  readonly orphanGraceSeconds: readonly [untilTerm: number, untilKill: number];
}

/** The child is the leader of its own process group, so a terminal's Ctrl-C reaches only the supervisor. */
export function spawnGuarded(options: GuardedSpawn): ChildProcess {
  const [untilTerm, untilKill] = options.orphanGraceSeconds.map(String) as [string, string];
  return spawn("/bin/sh", ["-c", SCRIPT, "mortise-guard", untilTerm, untilKill, ...options.argv], {
    cwd: options.cwd,
    env: options.environment,
    detached: true,
    stdio: ["pipe", options.stdout, options.stderr],
  });
}

/** Kills whatever is left in the process group of a process that has ended: its watcher and stray children. */
export function sweepGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
