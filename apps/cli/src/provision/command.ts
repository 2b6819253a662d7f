/**
 * Owns running a provisioning tool (apt-get, pip, go, dpkg …) to its end and telling why it failed.
 * Does not own long-lived processes (see supervisor/).
 */
import { spawn } from "node:child_process";

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly cwd?: string;
  readonly environment?: Record<string, string>;
  /** Milliseconds until the command is killed; it then counts as failed. */
  readonly timeoutMs: number;
}

/** Runs a command. Rejects when it cannot be started, exits with another code than 0, or takes too long. */
export async function run(
  command: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<CommandResult> {
  const result = await execute(command, args, options);
  if (result.code === 0) return result;
  throw new Error(`${command} exited with ${result.code}: ${lastLine(`${result.stdout}\n${result.stderr}`)}`);
}

function execute(command: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...options.environment },
      timeout: options.timeoutMs,
      killSignal: "SIGKILL",
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      stdout += chunk;
    });
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr += chunk;
    });
    child.once("error", (error: NodeJS.ErrnoException) => {
      reject(error.code === "ENOENT" ? new Error(`${command} is not installed`) : error);
    });
    child.once("close", (code, signal) => {
      if (signal !== null) reject(new Error(`${command} took longer than ${options.timeoutMs / 1000} s`));
      else resolve({ code: code ?? 1, stdout, stderr });
    });
  });
}

/** The last line with something in it: where tools put the reason. */
export function lastLine(output: string): string {
  const lines = output.split("\n").map((line) => line.trim());
  return lines.findLast((line) => line !== "") ?? "no output";
}
