/** Owns calling the `mortise` command as a user does, and telling what it printed. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const MAIN = fileURLToPath(new URL("../../apps/cli/dist/main.js", import.meta.url));
const MAX_OUTPUT_BYTES = 1 << 26;

/** @returns standard output. Rejects, with what was printed, for any exit code but 0. */
export async function mortise(...args: readonly string[]): Promise<string> {
  const start = performance.now();
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [MAIN, ...args], {
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  const took = Math.round(performance.now() - start);
  console.log(`$ mortise ${args.join(" ")}\n${stderr}${stdout.slice(0, 2_000)}\n(${took} ms)`);
  return stdout;
}
