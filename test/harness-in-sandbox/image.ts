/**
 * Owns an image without any C library where programs look for one: its shell, Node and a few programs of this host
 * bring their own, as in a distribution built on another library nothing is where glibc programs expect it. A harness
 * that depends on the image's library cannot start in it; one that brings its interpreter along can.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ensureToolbox, TOOLBOX_TARGET } from "@mortise/harness";

const PROGRAMS = ["bash", "cat", "dirname", "ls", "sleep"];
/** Libraries of programs only: every toolbox has the rest. */
const OWN_LIBRARIES = "usr/lib";
const LAYER = "application/vnd.oci.image.layer.v1.tar";
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const CONFIG = "application/vnd.oci.image.config.v1+json";

/** Writes an OCI layout with `repository` at /workspace. @returns its directory */
export async function imageWithoutLibrary(directory: string, repository: string): Promise<string> {
  const root = join(directory, "root");
  const cacheDirectory = join(directory, "cache");
  const bare = await ensureToolbox({ programs: [], cacheDirectory });
  const full = await ensureToolbox({ programs: PROGRAMS, cacheDirectory });
  const missing = PROGRAMS.filter((program) => !full.programs.includes(program));
  if (missing.length > 0) throw new Error(`this host has no ${missing.join(", ")}`);
  for (const name of ["usr/bin", OWN_LIBRARIES, "tmp", "opt", "etc", "root"])
    mkdirSync(join(root, name), { recursive: true });
  // Its programs start from the place where an agent's sandbox has the harness's own toolbox mounted over this one.
  cpSync(bare.directory, join(root, TOOLBOX_TARGET), { recursive: true, verbatimSymlinks: true });
  cpSync(join(full.directory, "programs"), join(root, "usr/bin"), { recursive: true });
  cpSync(join(full.directory, "bin/node"), join(root, "usr/bin/node"));
  const common = readdirSync(join(bare.directory, "lib"));
  for (const library of readdirSync(join(full.directory, "lib")).filter((name) => !common.includes(name)))
    cpSync(join(full.directory, "lib", library), join(root, OWN_LIBRARIES, library));
  symlinkSync("bash", join(root, "usr/bin/sh"));
  symlinkSync("usr/bin", join(root, "bin"));
  symlinkSync("usr/lib", join(root, "lib"));
  cpSync(repository, join(root, "workspace"), { recursive: true });
  return layout(join(directory, "layout"), root);
}

function layout(directory: string, root: string): string {
  const blobs = join(directory, "blobs/sha256");
  mkdirSync(blobs, { recursive: true });
  const put = (mediaType: string, bytes: Uint8Array | string) => {
    const hex = createHash("sha256").update(bytes).digest("hex");
    writeFileSync(join(blobs, hex), bytes);
    return { mediaType, digest: `sha256:${hex}`, size: Buffer.byteLength(bytes) };
  };
  const archive = join(directory, "layer.tar");
  execFileSync("tar", ["-C", root, "--owner=0", "--group=0", "--numeric-owner", "-cf", archive, "."]);
  const layer = put(LAYER, readFileSync(archive));
  const config = {
    os: "linux",
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    config: { Env: ["PATH=/usr/bin"], WorkingDir: "/workspace" },
    rootfs: { type: "layers", diff_ids: [layer.digest] },
  };
  const manifest = {
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: put(CONFIG, JSON.stringify(config)),
    layers: [layer],
  };
  const index = { schemaVersion: 2, manifests: [put(MANIFEST, JSON.stringify(manifest))] };
  writeFileSync(join(directory, "index.json"), JSON.stringify(index));
  writeFileSync(join(directory, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  return directory;
}
