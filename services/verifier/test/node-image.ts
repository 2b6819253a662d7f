/**
 * Owns an image with Node and the test runners of JavaScript over the Python one, from npm
 * (kept-image.ts).
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type KeptImage, keptImage, loadedLibraries } from "./kept-image.js";
import { pythonImage } from "./python-image.js";

const RUNNERS = ["jest@30.2.0", "vitest@4.0.14", "mocha@11.7.5"];
const NPM_TIMEOUT_MS = 300_000;

/** The image, or why this host cannot make it. */
export function nodeImage(): KeptImage | { readonly missing: string } {
  const base = pythonImage();
  if ("missing" in base) return base;
  return keptImage([2, base.root, RUNNERS, process.version], (root) => fill(base, root));
}

function fill(base: KeptImage, root: string): void {
  cpSync(base.root, root, { recursive: true, verbatimSymlinks: true });
  const node = realpathSync(process.execPath);
  copyFileSync(node, path.join(root, "usr/bin/node"));
  writeFileSync(path.join(root, "package.json"), '{"private":true}');
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", ...RUNNERS], {
    cwd: root,
    stdio: "pipe",
    timeout: NPM_TIMEOUT_MS,
  });
  const addons = readdirSync(path.join(root, "node_modules"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".node"))
    .map((name) => path.join(root, "node_modules", name));
  for (const library of loadedLibraries([node, ...addons])) {
    mkdirSync(path.join(root, path.dirname(library)), { recursive: true });
    copyFileSync(realpathSync(library), path.join(root, library));
  }
}
