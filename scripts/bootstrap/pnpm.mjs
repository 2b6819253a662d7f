/** Owns obtaining the exact pnpm that package.json names. npx (or corepack) keeps it in its own cache. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { capture } from "./child.mjs";
import { classifyInstallFailure, OperatorError } from "./operator-error.mjs";
import { root } from "./paths.mjs";

const { packageManager } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
export const pnpmVersion = packageManager.slice("pnpm@".length);

/** Ways to run the exact pnpm, the cheapest first. Each is asked for its version before it is trusted. */
const candidates = [
  { how: "pnpm on PATH", command: "pnpm", prefix: [] },
  { how: "npx", command: "npx", prefix: ["--yes", `pnpm@${pnpmVersion}`] },
  { how: "corepack", command: "corepack", prefix: [`pnpm@${pnpmVersion}`] },
];

// Without these npm and corepack retry for minutes, or ask, before they say that there is no registry.
const environment = () => ({
  ...process.env,
  npm_config_fetch_retries: "1",
  npm_config_update_notifier: "false",
  COREPACK_ENABLE_DOWNLOAD_PROMPT: "0",
});

/** @returns a function that runs `pnpm <args>` in the project's root and resolves with code and output. */
export async function obtainPnpm() {
  const refusals = [];
  for (const { how, command, prefix } of candidates) {
    const version = await capture(command, [...prefix, "--version"], { cwd: root, env: environment() }).catch(
      (error) => ({
        code: 127,
        output: error.code === "ENOENT" ? "not installed" : String(error),
      }),
    );
    // A pnpm of another version may answer with the pinned one, having switched to it by itself: as good.
    if (version.code === 0 && version.output.trim().split("\n").at(-1) === pnpmVersion) {
      return (args) => capture(command, [...prefix, ...args], { cwd: root, env: environment() });
    }
    refusals.push({ how, output: version.output.trim() });
  }
  const failed = refusals.find(({ how, output }) => how !== "pnpm on PATH" && output !== "not installed");
  if (failed !== undefined)
    throw classifyInstallFailure(failed.output, `pnpm ${pnpmVersion} through ${failed.how}`);
  throw new OperatorError({
    code: "MORTISE_OPERATOR_NO_PNPM",
    field: "npx",
    message: `pnpm ${pnpmVersion} is needed, and neither npx nor corepack is on PATH to bring it`,
    fix: `install npm (it carries npx), or pnpm ${pnpmVersion} itself`,
  });
}
