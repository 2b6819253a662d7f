/**
 * An OCI layout with a work tree inside it, made of this host's own programs, and tasks that run in it. Layers are not
 * compressed: what is tested is what becomes of them, not how they are unpacked.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { taskDigest } from "@mortise/tasks";
import { prepareHostImage } from "../src/backend/host-image.js";
import { FIXTURES } from "./manager-world.js";

export const BROKEN = "exports.add = (a, b) => a - b;\n";
export const REPAIRED = "exports.add = (first, second) => first + second;\n";

/** The layout's directory. Its work tree at /testbed is a repository whose later commit holds the repair. */
export function layoutWithRepository(base: string): string {
  const { location } = prepareHostImage(path.join(base, "host"));
  const top = path.join(base, "top");
  const repository = path.join(top, "testbed");
  mkdirSync(path.join(repository, "src"), { recursive: true });
  const git = (...argv: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...argv], {
      cwd: repository,
      stdio: "pipe",
    });
  const commit = (content: string, message: string) => {
    writeFileSync(path.join(repository, "src/add.cjs"), content);
    git("add", "-A");
    git("commit", "-qm", message);
  };
  git("init", "-q", "-b", "main");
  commit(BROKEN, "broken");
  git("checkout", "-qb", "later");
  commit(REPAIRED, "repaired");
  git("checkout", "-q", "main");
  return layout(path.join(base, "image"), [location, top]);
}

function layout(directory: string, roots: readonly string[]): string {
  const blobs = path.join(directory, "blobs/sha256");
  mkdirSync(blobs, { recursive: true });
  const put = (bytes: Uint8Array | string) => {
    const hex = createHash("sha256").update(bytes).digest("hex");
    writeFileSync(path.join(blobs, hex), bytes);
    return { digest: `sha256:${hex}`, size: Buffer.byteLength(bytes) };
  };
  const layers = roots.map((root) => ({
    mediaType: "application/vnd.oci.image.layer.v1.tar",
    ...put(packed(root)),
  }));
  const config = put(
    JSON.stringify({
      os: "linux",
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      config: { Env: ["PATH=/usr/bin:/bin", "SETTING=of-the-image"], WorkingDir: "/testbed" },
      rootfs: { type: "layers", diff_ids: layers.map(({ digest }) => digest) },
    }),
  );
  const manifest = put(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      config: { mediaType: "application/vnd.oci.image.config.v1+json", ...config },
      layers,
    }),
  );
  const entry = { mediaType: "application/vnd.oci.image.manifest.v1+json", ...manifest };
  writeFileSync(path.join(directory, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: [entry] }));
  writeFileSync(path.join(directory, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  return directory;
}

/** Another process may link to the same Node binary meanwhile, which tar says with status 1. */
function packed(root: string): Buffer {
  const argv = ["-C", root, "--numeric-owner", "-cf", "-", "."];
  const { status, stdout, stderr } = spawnSync("tar", argv, { maxBuffer: 1 << 30 });
  if (status !== 0 && status !== 1) throw new Error(`tar: ${status} ${stderr}`);
  return stdout;
}

/** Writes a task that runs in an image; returns how it is named. `files` replaces or adds files. */
export function writeTask(
  tasks: string,
  id: string,
  toml: string,
  files: Readonly<Record<string, string>> = {},
): { id: string; digest: string } {
  const directory = path.join(tasks, id);
  cpSync(path.join(FIXTURES, "tasks/add-numbers/tests"), path.join(directory, "tests"), { recursive: true });
  const all = {
    "task.toml": toml,
    "instruction.md": "Make add return the sum.\n",
    "solution/solve.sh": `printf '%s' '${REPAIRED.trimEnd()}' > "$WORKSPACE/src/add.cjs"\n`,
    "solution/gold.patch": goldPatch(),
    ...files,
  };
  for (const [name, content] of Object.entries(all)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), content);
  }
  return { id, digest: taskDigest(directory) };
}

function goldPatch(): string {
  return `--- a/src/add.cjs\n+++ b/src/add.cjs\n@@ -1 +1 @@\n-${BROKEN}+${REPAIRED}`;
}

/** Whether a file of a layout holds these bytes, to show that a test looks for something that is there. */
export function layoutHolds(directory: string, text: string): boolean {
  const { manifests } = JSON.parse(readFileSync(path.join(directory, "index.json"), "utf8"));
  const manifest = JSON.parse(readFileSync(blobOf(directory, manifests[0].digest), "utf8"));
  return manifest.layers.some(({ digest }: { digest: string }) =>
    readFileSync(blobOf(directory, digest)).includes(text),
  );
}

function blobOf(directory: string, digest: string): string {
  return path.join(directory, "blobs", digest.replace(":", "/"));
}
