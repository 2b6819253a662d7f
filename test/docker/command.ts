/** Owns running a program of the host to its end for a test. Does not judge its exit code. */
import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

export const projectRoot = fileURLToPath(new URL("../..", import.meta.url));

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to this process's own. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

export interface Finished {
  /** -1 when a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function runCommand({ command, args, environment = {}, timeoutMs }: Command): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: projectRoot,
      env: { ...process.env, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
      ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.once("error", reject);
    child.once("close", (code) => resolve({ code: code ?? -1, stdout, stderr }));
  });
}

/** Compose v2 where the plugin is installed, else docker-compose 1.29; MORTISE_COMPOSE names another. */
export function composeCommand(): [string, ...string[]] {
  const named = process.env.MORTISE_COMPOSE;
  if (named !== undefined) return [named];
  return spawnSync("docker", ["compose", "version"]).status === 0
    ? ["docker", "compose"]
    : ["docker-compose"];
}
