/**
 * Owns what a one-node cluster is made of: programs of this machine, and the parts of Kubernetes, built once from its
 * own modules and kept. Says what is missing; starts nothing.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

const PROGRAM = path.join(import.meta.dirname, "program");
const HELPER = path.join(import.meta.dirname, "../../../services/sandbox-manager/pod-helper");
const CNI_DIRECTORIES = ["/usr/lib/cni", "/opt/cni/bin"];
const CNI_PLUGINS = ["bridge", "host-local", "loopback"];
const GO_DIRECTORIES = ["/usr/local/go/bin", "/usr/lib/go/bin"];

export interface Parts {
  /** Runs every part of Kubernetes; the first argument says which. */
  readonly kubernetes: string;
  readonly etcd: string;
  readonly helper: string;
  readonly containerd: string;
  readonly cniDirectory: string;
}

/** Everything, or why this machine cannot run a cluster. The first time takes minutes and a gigabyte of modules. */
export function findParts(): Parts | { readonly missing: string } {
  try {
    if (process.platform !== "linux" || process.getuid?.() !== 0) throw new Error("it needs root on Linux");
    const containerd = programOf("containerd", "install containerd");
    programOf("runc", "install runc");
    programOf("openssl", "install openssl");
    const cniDirectory = CNI_DIRECTORIES.find((one) =>
      CNI_PLUGINS.every((name) => existsSync(path.join(one, name))),
    );
    if (cniDirectory === undefined)
      throw new Error(`no CNI plug-ins ${CNI_PLUGINS.join(", ")}: install containernetworking-plugins`);
    const cache = process.env.MORTISE_TEST_CACHE ?? path.join(homedir(), ".cache/mortise-test");
    mkdirSync(cache, { recursive: true });
    return {
      containerd,
      cniDirectory,
      etcd: etcdIn(cache),
      helper: built(HELPER, cache, "pod-helper", { CGO_ENABLED: "0" }),
      kubernetes: built(PROGRAM, cache, "kubernetes"),
    };
  } catch (error) {
    return { missing: (error as Error).message };
  }
}

/** A program built from a folder's sources, or found built from the same ones. */
function built(
  directory: string,
  cache: string,
  name: string,
  environment: Readonly<Record<string, string>> = {},
): string {
  const hash = createHash("sha256");
  for (const file of readdirSync(directory).sort())
    hash.update(file).update(readFileSync(path.join(directory, file)));
  const target = path.join(cache, `${name}-${hash.digest("hex").slice(0, 16)}`);
  if (existsSync(target)) return target;
  const go = programOf("go", "install Go", GO_DIRECTORIES);
  const unfinished = `${target}.${process.pid}`;
  run(go, ["build", "-trimpath", "-ldflags", "-s -w", "-o", unfinished, "."], directory, {
    ...process.env,
    ...environment,
  });
  renameSync(unfinished, target);
  return target;
}

/** Debian's server, unpacked and not installed: it would be started as a service. */
function etcdIn(cache: string): string {
  const own = whereIs("etcd", []);
  if (own !== undefined) return own;
  const directory = path.join(cache, "etcd");
  const program = path.join(directory, "usr/bin/etcd");
  if (existsSync(program)) return program;
  mkdirSync(directory, { recursive: true });
  run(programOf("apt-get", "install etcd"), ["download", "etcd-server"], directory);
  const archive = readdirSync(directory).find((name) => name.endsWith(".deb"));
  if (archive === undefined) throw new Error("the package etcd-server could not be fetched; install etcd");
  run("dpkg", ["-x", archive, "."], directory);
  return program;
}

function programOf(name: string, fix: string, also: readonly string[] = []): string {
  const found = whereIs(name, also);
  if (found === undefined) throw new Error(`no program ${name}: ${fix}`);
  return found;
}

function whereIs(name: string, also: readonly string[]): string | undefined {
  const directories = [...(process.env.PATH ?? "").split(":"), "/usr/sbin", "/sbin", ...also];
  return directories.map((one) => path.join(one, name)).find((file) => existsSync(file));
}

function run(
  program: string,
  argv: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): void {
  const { status, stderr, error } = spawnSync(program, argv, { cwd, env, encoding: "utf8" });
  if (status !== 0)
    throw new Error(`${path.basename(program)} ${argv.join(" ")}: ${(error?.message ?? stderr).slice(-800)}`);
}
