/**
 * Owns taking one file out of a Debian package without installing it: the package is downloaded through the
 * machine's own apt and mirror, from a newer suite if need be, and unpacked into a directory.
 * Signatures are checked by apt against Debian's keyring. Nothing of the system's apt state is touched.
 */
import { existsSync, globSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "./command.js";

const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const TIMEOUT_MS = 120_000;

export interface PackageRequest {
  readonly name: string;
  /** Suites to look in, the preferred first. */
  readonly suites: readonly string[];
  /** Says whether a version will do; others are passed over. */
  readonly accepts: (version: string) => boolean;
  /** Where the program may lie in the package, relative to the root. */
  readonly places: readonly string[];
}

/**
 * Unpacks the package below `directory` and returns the path of its program, which is proven to run here: a
 * newer suite may want a newer C library than this machine has. Rejects with the reason of every suite.
 */
export async function unpackDebianPackage(request: PackageRequest, directory: string): Promise<string> {
  const mirror = await configuredMirror();
  const reasons: string[] = [];
  for (const suite of request.suites) {
    try {
      return await unpackFrom(mirror, suite, request, join(directory, suite));
    } catch (error) {
      reasons.push(`${suite}: ${(error as Error).message}`);
    }
  }
  throw new Error(reasons.join("; "));
}

/** The Debian archive this machine already uses; other machines may not reach any other. */
async function configuredMirror(): Promise<string> {
  const files = globSync(["/etc/apt/sources.list", "/etc/apt/sources.list.d/*.{list,sources}"]);
  for (const file of files.sort()) {
    const mirror = /^[^#\n]*?(https?:\/\/\S+\/debian)\/?(?=\s|$)/m.exec(await readFile(file, "utf8"))?.[1];
    if (mirror !== undefined) return mirror;
  }
  throw new Error("apt is not set up for a Debian archive");
}

async function unpackFrom(
  mirror: string,
  suite: string,
  request: PackageRequest,
  directory: string,
): Promise<string> {
  await mkdir(join(directory, "lists", "partial"), { recursive: true });
  await mkdir(join(directory, "cache", "archives", "partial"), { recursive: true });
  const list = join(directory, "sources.list");
  await writeFile(list, `deb [signed-by=${KEYRING}] ${mirror} ${suite} main\n`);
  const options = [
    `Dir::Etc::sourcelist=${list}`,
    "Dir::Etc::sourceparts=/dev/null",
    `Dir::State::lists=${join(directory, "lists")}`,
    `Dir::Cache=${join(directory, "cache")}`,
    "APT::Sandbox::User=root",
    // The descriptions and component metadata of the suite are not needed and are twice the size of its index.
    "Acquire::Languages=none",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
    "Acquire::Retries=1",
  ].flatMap((option) => ["-o", option]);
  const settings = { cwd: directory, timeoutMs: TIMEOUT_MS };

  await run("apt-get", [...options, "update"], settings);
  const { stdout } = await run("apt-cache", [...options, "madison", request.name], settings);
  const versions = stdout.split("\n").flatMap((line) => line.split("|")[1]?.trim() ?? []);
  const version = versions.find(request.accepts);
  if (version === undefined)
    throw new Error(versions.length === 0 ? "has no such package" : `has only ${versions[0]}`);
  await run("apt-get", [...options, "download", `${request.name}=${version}`], settings);
  const [archive] = globSync(join(directory, "*.deb"));
  if (archive === undefined) throw new Error("apt-get downloaded nothing");
  const tree = join(directory, "tree");
  await run("dpkg", ["-x", archive, tree], settings);
  const program = request.places.map((place) => join(tree, place)).find((file) => existsSync(file));
  if (program === undefined) throw new Error(`the package holds none of ${request.places.join(", ")}`);
  await run(program, ["--version"], settings);
  return program;
}

/** The code name of the Debian release this machine runs, such as "bookworm"; undefined elsewhere. */
export async function ownSuite(): Promise<string | undefined> {
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  return /^VERSION_CODENAME=(\w+)$/m.exec(release)?.[1];
}
