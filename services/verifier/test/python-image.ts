/**
 * Owns an OCI layout with Python, pytest, bash and git, made of this host's own programs, for tests that grade real
 * runs (kept-image.ts).
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { type KeptImage, keptImage, loadedLibraries } from "./kept-image.js";

const PYTEST = "pytest==8.4.2";
/** Changes when the same parts are laid out in another way. */
const LAYOUT = 3;
const PROGRAMS =
  "bash sh cat chmod cp cut date dirname basename echo env expr false find git grep head id ln ls mkdir mktemp mv nohup printf pwd readlink rm rmdir sed setsid sleep sort stat tail tee test touch tr true uname wc xargs".split(
    " ",
  );
const PLACES = ["/usr/bin", "/bin", "/usr/local/bin"];
const SKIPPED = new Set([
  "test",
  "idlelib",
  "tkinter",
  "turtledemo",
  "ensurepip",
  "lib2to3",
  "site-packages",
]);
const NAMES = "root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/tmp:/bin/sh\n";

interface Python {
  readonly program: string;
  readonly version: string;
  readonly library: string;
  readonly libraryDirectory: string;
}

/** The image, or why this host cannot make it. */
export function pythonImage(): KeptImage | { readonly missing: string } {
  if (process.platform !== "linux") return { missing: "it is made of Linux programs" };
  const python = findPython();
  if (python === undefined) return { missing: "there is no python3 with a standard library" };
  return keptImage([LAYOUT, PYTEST, PROGRAMS, python], (root) => fill(python, root));
}

function findPython(): Python | undefined {
  const ask =
    "import json,sys,sysconfig as s;print(json.dumps([sys.executable,'%d.%d'%sys.version_info[:2],s.get_path('stdlib'),s.get_config_var('LIBDIR')]))";
  const { status, stdout } = spawnSync("python3", ["-c", ask], { encoding: "utf8" });
  if (status !== 0) return undefined;
  const [program, version, library, libraryDirectory] = JSON.parse(stdout) as [
    string,
    string,
    string,
    string,
  ];
  return { program: realpathSync(program), version, library, libraryDirectory };
}

function fill(python: Python, root: string): void {
  const at = (...parts: string[]) => path.join(root, ...parts);
  for (const directory of [
    "usr/bin",
    "usr/local/bin",
    "usr/local/lib",
    "etc",
    "root",
    "proc",
    "dev",
    "tests",
  ])
    mkdirSync(at(directory), { recursive: true });
  mkdirSync(at("tmp"));
  chmodSync(at("tmp"), 0o1777);
  symlinkSync("usr/bin", at("bin"));
  const programs = PROGRAMS.flatMap((name) => {
    const found = PLACES.map((directory) => path.join(directory, name)).find((file) => existsSync(file));
    return found === undefined ? [] : [{ name, source: realpathSync(found) }];
  });
  for (const { name, source } of programs) copyFileSync(source, at("usr/bin", name));
  const standard = at("usr/local/lib", `python${python.version}`);
  cpSync(python.library, standard, {
    recursive: true,
    dereference: true,
    preserveTimestamps: true,
    filter: (source) => !SKIPPED.has(path.relative(python.library, source)),
  });
  copyFileSync(python.program, at("usr/local/bin/python3"));
  symlinkSync("python3", at("usr/local/bin/python"));
  const modules = path.join(standard, "lib-dynload");
  const loaded = [
    ...programs.map(({ source }) => source),
    python.program,
    ...readdirSync(modules).map((name) => path.join(modules, name)),
  ];
  for (const library of loadedLibraries(loaded, python.libraryDirectory)) {
    const target = at(library.startsWith(python.libraryDirectory) ? "usr/lib/own" : path.dirname(library));
    mkdirSync(target, { recursive: true });
    copyFileSync(realpathSync(library), path.join(target, path.basename(library)));
  }
  const packages = path.join(standard, "site-packages");
  const pip = ["-m", "pip", "install", "--quiet", "--no-input", "--target", packages, PYTEST];
  execFileSync("python3", pip, { stdio: "pipe", timeout: 180_000 });
  rmSync(path.join(packages, "bin"), { recursive: true, force: true });
  // Debian's Python looks here instead.
  symlinkSync("site-packages", path.join(standard, "dist-packages"));
  writeFileSync(
    at("usr/local/bin/pytest"),
    "#!/usr/local/bin/python3\nimport sys\nfrom pytest import console_main\nsys.exit(console_main())\n",
    { mode: 0o755 },
  );
  writeFileSync(at("etc/passwd"), NAMES);
  writeFileSync(at("etc/group"), "root:x:0:\nagent:x:1000:\n");
  writeFileSync(at("etc/gitconfig"), "[safe]\n\tdirectory = *\n[user]\n\tname = t\n\temail = t@localhost\n");
}

/** Writes a layout of the image and a work tree at /testbed over it. */
export function layoutOver({ layer }: KeptImage, workTree: string, directory: string): string {
  const blobs = path.join(directory, "blobs/sha256");
  mkdirSync(blobs, { recursive: true });
  const put = (bytes: Uint8Array | string) => {
    const hex = createHash("sha256").update(bytes).digest("hex");
    writeFileSync(path.join(blobs, hex), bytes);
    return { digest: `sha256:${hex}`, size: Buffer.byteLength(bytes) };
  };
  const packed = execFileSync(
    "tar",
    [
      "-C",
      workTree,
      "--owner=0",
      "--group=0",
      "--numeric-owner",
      "--transform",
      "s,^\\.,./testbed,",
      "-cf",
      "-",
      ".",
    ],
    { maxBuffer: 1 << 28 },
  );
  const layers = [readFileSync(layer), packed].map((bytes) => ({
    mediaType: "application/vnd.oci.image.layer.v1.tar",
    ...put(bytes),
  }));
  const config = put(
    JSON.stringify({
      os: "linux",
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      config: {
        Env: [
          "PATH=/usr/local/bin:/usr/bin:/bin",
          "LD_LIBRARY_PATH=/usr/lib/own",
          "PYTEST_ADDOPTS=--collect-only",
        ],
        WorkingDir: "/testbed",
      },
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
