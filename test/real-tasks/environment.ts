/**
 * Owns the environments of the tasks: one OCI layout with an image a task, made without a container engine. Each is
 * a root with Python, pytest, git and a shell, and over it the project's dependencies and its work tree at /testbed,
 * importable as a development install makes it. Nothing is fetched when such an image runs.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { KeptImage } from "../../services/verifier/test/kept-image.js";
import type { RealProject } from "./projects.js";

const LAYER = "application/vnd.oci.image.layer.v1.tar";
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const CONFIG = "application/vnd.oci.image.config.v1+json";
export const WORKDIR = "/testbed";
const ENVIRONMENT = ["PATH=/usr/local/bin:/usr/bin:/bin", "LD_LIBRARY_PATH=/usr/lib/own"];
const INSTALL_TIMEOUT_MS = 300_000;

interface Blob {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/** Where Python of an image looks for packages, from its root. */
export function packagesOf({ root }: KeptImage): string {
  const [library] = readdirSync(join(root, "usr/local/lib")).filter((name) => name.startsWith("python3."));
  return join("usr/local/lib", library!, "site-packages");
}

export class Environments {
  readonly directory: string;
  readonly #python: KeptImage;
  readonly #base: Blob;
  readonly #manifests: object[] = [];

  constructor(directory: string, python: KeptImage) {
    this.directory = directory;
    this.#python = python;
    mkdirSync(this.#blobs, { recursive: true });
    const { digest, size } = described(readFileSync(python.layer));
    linkOrCopy(python.layer, join(this.#blobs, digest.slice("sha256:".length)));
    this.#base = { mediaType: LAYER, digest, size };
    writeFileSync(join(directory, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  }

  /**
   * Adds the image of a project. `plant` may put more files below the root of its own layer.
   * @returns how a record names it
   */
  add(
    name: string,
    project: RealProject,
    workTree: string,
    plant: (root: string) => void = () => undefined,
  ): string {
    const root = join(this.directory, `${name}.root`);
    const packages = join(root, packagesOf(this.#python));
    try {
      mkdirSync(packages, { recursive: true });
      install(project.dependencies, packages);
      writeFileSync(join(packages, "testbed.pth"), `${join(WORKDIR, project.importable)}\n`);
      cpSync(workTree, join(root, WORKDIR), { recursive: true, preserveTimestamps: true });
      plant(root);
      this.#write(name, { mediaType: LAYER, ...this.#put(packed(root)) });
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
    return `oci:${this.directory}:${name}`;
  }

  get #blobs(): string {
    return join(this.directory, "blobs/sha256");
  }

  #put(bytes: Uint8Array | string): Omit<Blob, "mediaType"> {
    const blob = described(bytes);
    writeFileSync(join(this.#blobs, blob.digest.slice("sha256:".length)), bytes);
    return blob;
  }

  #write(name: string, layer: Blob): void {
    const layers = [this.#base, layer];
    const config = {
      os: "linux",
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      config: { Env: ENVIRONMENT, WorkingDir: WORKDIR },
      rootfs: { type: "layers", diff_ids: layers.map(({ digest }) => digest) },
    };
    const manifest = {
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: { mediaType: CONFIG, ...this.#put(JSON.stringify(config)) },
      layers,
    };
    this.#manifests.push({
      mediaType: MANIFEST,
      ...this.#put(JSON.stringify(manifest)),
      annotations: { "org.opencontainers.image.ref.name": name },
    });
    writeFileSync(
      join(this.directory, "index.json"),
      JSON.stringify({ schemaVersion: 2, manifests: this.#manifests }),
    );
  }
}

function install(dependencies: readonly string[], packages: string): void {
  if (dependencies.length === 0) return;
  const options = ["--quiet", "--no-input", "--no-compile", "--target", packages];
  execFileSync("python3", ["-m", "pip", "install", ...options, ...dependencies], {
    stdio: "pipe",
    timeout: INSTALL_TIMEOUT_MS,
  });
}

function described(bytes: Uint8Array | string): Omit<Blob, "mediaType"> {
  return {
    digest: `sha256:${createHash("sha256").update(bytes).digest("hex")}`,
    size: Buffer.byteLength(bytes),
  };
}

/** Equal files give equal archives, whoever made them and when. */
function packed(root: string): Buffer {
  const owner = ["--owner=0", "--group=0", "--numeric-owner"];
  return execFileSync("tar", ["-C", root, "--sort=name", "--mtime=@0", ...owner, "-cf", "-", "."], {
    maxBuffer: 1 << 28,
  });
}

function linkOrCopy(source: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true });
  try {
    linkSync(source, target);
  } catch {
    cpSync(source, target);
  }
}
