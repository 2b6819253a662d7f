/** Owns where things lie in the clone. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const binDirectory = join(root, "node_modules", ".bin");
/** The Node 24 that npm's `node` package brings: a real binary, not a script. */
export const node24 = join(binDirectory, process.platform === "win32" ? "node.exe" : "node");
export const cliMain = join(root, "apps", "cli", "dist", "main.js");

/** True when a command can be handed over at once, without installing or building. */
export function isPrepared() {
  return existsSync(node24) && existsSync(cliMain);
}

/** This environment with the workspace's own tools first on PATH, so that `node` means Node 24. */
export function toolEnvironment() {
  return {
    ...process.env,
    PATH: `${binDirectory}${process.platform === "win32" ? ";" : ":"}${process.env.PATH ?? ""}`,
  };
}
