/**
 * Owns an image with Node and the test runners of JavaScript over the Python one, from npm. Built once and kept in the
 * system's temporary directory by what it is made of. Says why where it cannot be.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type PythonImage, pythonImage } from "./python-image.js";

const RUNNERS = ["jest@30.2.0", "vitest@4.0.14", "mocha@11.7.5"];
const NPM_TIMEOUT_MS = 300_000;

/** The image, or why this host cannot make it. */
export function nodeImage(): PythonImage | { readonly missing: string } {
  const base = pythonImage();
  if ("missing" in base) return base;
  const key = createHash("sha256")
    .update(JSON.stringify([2, base.root, RUNNERS, process.version]))
    .digest("hex")
    .slice(0, 16);
  const place = path.join(tmpdir(), "mortise-test-images", key);
  if (!existsSync(place)) {
    const unfinished = `${place}-${process.pid}`;
    try {
      build(base, unfinished);
      renameSync(unfinished, place);
    } catch (error) {
      if (!existsSync(place)) return { missing: `npm's test runners: ${String(error).slice(0, 200)}` };
    } finally {
      rmSync(unfinished, { recursive: true, force: true });
    }
  }
  return { root: path.join(place, "root"), layer: path.join(place, "layer.tar") };
}

function build(base: PythonImage, place: string): void {
  const root = path.join(place, "root");
  mkdirSync(place, { recursive: true });
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
  const { stdout } = spawnSync("ldd", [node, ...addons], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  for (const [, library] of stdout.matchAll(/(?:=>\s*|^\s*)(\/\S+)\s+\(0x/gm)) {
    mkdirSync(path.join(root, path.dirname(library!)), { recursive: true });
    copyFileSync(realpathSync(library!), path.join(root, library!));
  }
  execFileSync("tar", [
    "-C",
    root,
    "--owner=0",
    "--group=0",
    "--numeric-owner",
    "-cf",
    `${root}/../layer.tar`,
    ".",
  ]);
}
