#!/usr/bin/env node
/**
 * Owns compiling the tree: WebAssembly first where its sources changed, then TypeScript by project references.
 * Does not generate protobuf code: packages/contracts/src/gen is committed (`pnpm run generate` rewrites it).
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { foreground } from "./bootstrap/child.mjs";
import { node24, root, toolEnvironment } from "./bootstrap/paths.mjs";

/** Workspace packages with a `build:wasm` script; their sources lie in `assembly/`. */
function wasmPackages() {
  return readdirSync(join(root, "packages"))
    .map((name) => join(root, "packages", name))
    .filter((directory) => existsSync(join(directory, "package.json")))
    .map((directory) => ({
      directory,
      manifest: JSON.parse(readFileSync(join(directory, "package.json"), "utf8")),
    }))
    .filter(({ manifest }) => manifest.scripts?.["build:wasm"] !== undefined)
    .map(({ directory, manifest }) => ({ directory, script: manifest.scripts["build:wasm"], manifest }));
}

function sourceDigest({ directory, script, manifest }) {
  const assembly = join(directory, "assembly");
  const hash = createHash("sha256")
    .update(script)
    .update(JSON.stringify(manifest.devDependencies ?? {}));
  const files = readdirSync(assembly, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  for (const path of files.map((file) => join(file.parentPath, file.name)).sort()) {
    hash.update(path.slice(directory.length)).update(readFileSync(path));
  }
  return hash.digest("hex");
}

/** Runs the package's own script, so that what it does is written in one place, its package.json. */
async function buildWasm(wasm) {
  const stamp = join(wasm.directory, "dist", ".wasm-sources");
  const digest = sourceDigest(wasm);
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return 0;
  rmSync(stamp, { force: true });
  const environment = toolEnvironment();
  const PATH = `${join(wasm.directory, "node_modules", ".bin")}:${environment.PATH}`;
  const code = await foreground("sh", ["-c", wasm.script], {
    cwd: wasm.directory,
    env: { ...environment, PATH },
  });
  if (code !== 0) return code;
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, digest);
  return 0;
}

for (const wasm of wasmPackages()) {
  const code = await buildWasm(wasm);
  if (code !== 0) process.exit(code);
}
const tsc = join(root, "node_modules", "@typescript", "native", "bin", "tsc");
process.exitCode = await foreground(node24, [tsc, "-b", ...process.argv.slice(2)], {
  cwd: root,
  env: toolEnvironment(),
});
