/**
 * Owns bringing the clone to a state in which commands run: dependencies as the lockfile says, code built.
 * A second call with nothing changed costs two file reads and one `tsc -b` that finds everything current.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { capture } from "./child.mjs";
import { classifyInstallFailure, OperatorError } from "./operator-error.mjs";
import { node24, root, toolEnvironment } from "./paths.mjs";
import { obtainPnpm } from "./pnpm.mjs";

/** Room for node_modules (about 1 GB), pnpm's store when it is on the same disk, and the build. */
const INSTALL_FREE_BYTES = 3 * 1024 ** 3;
const stampFile = join(root, "node_modules", ".mortise-install");

/** Progress goes to stderr: stdout belongs to the command that follows, whose last line may be JSON. */
const say = (line) => process.stderr.write(`${line}\n`);

/** Installs if the lockfile or the platform changed since the last complete install, then builds. */
export async function prepare() {
  const digest = installDigest();
  if (!isInstalled(digest)) await install(digest);
  await build();
}

function installDigest() {
  const hash = createHash("sha256").update(`${process.platform} ${process.arch}\n`);
  for (const file of ["pnpm-lock.yaml", "pnpm-workspace.yaml", "package.json"])
    hash.update(readFileSync(join(root, file)));
  return hash.digest("hex");
}

function isInstalled(digest) {
  return existsSync(node24) && existsSync(stampFile) && readFileSync(stampFile, "utf8") === digest;
}

async function install(digest) {
  assertFreeSpace();
  const pnpm = await obtainPnpm();
  say("mortise: installing dependencies (once; about a minute)");
  // Removed first: an install that is cut off must not look complete to the next start.
  rmSync(stampFile, { force: true });
  const { code, output } = await pnpm(["install", "--frozen-lockfile"]);
  if (code !== 0) throw classifyInstallFailure(output, "pnpm install");
  if (!existsSync(node24)) {
    throw new OperatorError({
      code: "MORTISE_OPERATOR_INSTALL_FAILED",
      field: "node_modules/.bin/node",
      message: "the install finished without placing the Node 24 binary",
      fix: "remove node_modules and run the same command again",
      detail: output,
    });
  }
  writeFileSync(stampFile, digest);
}

function assertFreeSpace() {
  const { bavail, bsize } = statfsSync(root);
  const free = bavail * bsize;
  if (free >= INSTALL_FREE_BYTES) return;
  const gib = (bytes) => (bytes / 1024 ** 3).toFixed(1);
  throw new OperatorError({
    code: "MORTISE_OPERATOR_DISK_FULL",
    field: "disk",
    message: `${gib(free)} GiB are free where the project lies; installing needs ${gib(INSTALL_FREE_BYTES)} GiB`,
    fix: "free some space or move the clone to another disk",
  });
}

async function build() {
  const { code, output } = await capture(node24, [join(root, "scripts", "build.mjs")], {
    cwd: root,
    env: toolEnvironment(),
  });
  if (code === 0) return;
  if (/ENOSPC|no space left/i.test(output)) throw classifyInstallFailure(output, "build");
  throw new OperatorError({
    code: "MORTISE_OPERATOR_BUILD_FAILED",
    field: "build",
    message: "the build failed; its output is above",
    fix: "on an unchanged clone, remove node_modules and every dist folder and run the same command again",
    detail: output.trimEnd(),
  });
}
