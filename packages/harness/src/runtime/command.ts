/** Owns running an installer (npm, pip) to its end. Its environment is the operator's: registries are set there. */
import { spawn } from "node:child_process";
import { delimiter, dirname } from "node:path";

const OUTPUT_CHARACTERS = 20_000;

export interface CommandOptions {
  readonly cwd: string;
  readonly timeoutMs: number;
}

export interface CommandResult {
  readonly ok: boolean;
  /** Standard output and error together, the end of it. */
  readonly output: string;
}

/** Resolves also when the command fails or cannot be started; `output` says why. */
export function runCommand(
  command: string,
  args: readonly string[],
  { cwd, timeoutMs }: CommandOptions,
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: timeoutMs,
      killSignal: "SIGKILL",
      // npm is a script for whichever node comes first: it shall judge engines by the one that runs Mortise.
      env: { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ""}` },
    });
    let output = "";
    const keep = (chunk: string) => {
      output = (output + chunk).slice(-OUTPUT_CHARACTERS);
    };
    child.stdout.setEncoding("utf8").on("data", keep);
    child.stderr.setEncoding("utf8").on("data", keep);
    child.once("error", (error: NodeJS.ErrnoException) =>
      resolve({ ok: false, output: error.code === "ENOENT" ? `${command} is not installed` : error.message }),
    );
    child.once("close", (code, signal) =>
      resolve({
        ok: code === 0,
        output: signal === null ? output : `${output}\ntook longer than ${timeoutMs / 1000} s`,
      }),
    );
  });
}
