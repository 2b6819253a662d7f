/**
 * Owns the program a helper runs: this package as it is built, the few packages it needs there, and `nft` and `git` of
 * this host with their libraries, as one archive to be unpacked at `/`. The rest of its root is the host image.
 */
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import path from "node:path";
import { packTar, type TarMember } from "../../../patch/tar.js";
import { dynamicLibraries } from "../../host-image.js";

const APP = "mortise/app";
/** Of this package's dependencies, what helper-main.ts leads to. */
const PACKAGES = ["@mortise/contracts", "koffi", "tar-stream", "yauzl", "zod"];
/** Without nft the helper refuses allow-lists, without git it seals nothing, as this host would. */
const PROGRAMS = ["nft", "git"];
/** By it nft writes rules as it does here. */
const PROTOCOLS: TarMember = {
  name: "etc/protocols",
  kind: "file",
  mode: 0o644,
  content: Buffer.from("tcp 6 TCP\nudp 17 UDP\n"),
};
const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";
/** Read by people and compilers. */
const NOT_RUN = /(\.d\.[cm]?ts|\.[cm]?ts|\.map|\.md|\.tsbuildinfo)$/;

/** Absolute, in the helper. */
export const HELPER_PROGRAM = `/${APP}/dist/backend/docker/remote/helper-main.js`;

export async function helperCode(): Promise<Uint8Array> {
  const own = packageAbove(import.meta.dirname);
  const files = new Map([
    [`${APP}/package.json`, path.join(own, "package.json")],
    ...filesBelow(path.join(own, "dist"), `${APP}/dist`),
    ...PACKAGES.flatMap((name) => packageFiles(name, own, APP)),
    ...programFiles(),
  ]);
  const members = [...files].map(
    ([name, file]): TarMember => ({
      name,
      kind: "file",
      mode: (statSync(file).mode & 0o111) === 0 ? 0o644 : 0o755,
      content: readFileSync(file),
    }),
  );
  return packTar([...members, PROTOCOLS]);
}

function packageAbove(directory: string): string {
  return existsSync(path.join(directory, "package.json")) ? directory : packageAbove(path.dirname(directory));
}

/** A package with those it depends on inside it, each found as Node would from where it really lies. */
function packageFiles(name: string, from: string, into: string): [string, string][] {
  const directory = installed(name, from);
  // Optional ones are there for other platforms.
  if (directory === undefined) return [];
  const place = `${into}/node_modules/${name}`;
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(
    readFileSync(path.join(directory, "package.json"), "utf8"),
  ) as { dependencies?: object; optionalDependencies?: object };
  const below = Object.keys({ ...dependencies, ...optionalDependencies });
  return [
    ...filesBelow(directory, place),
    ...below.flatMap((dependency) => packageFiles(dependency, directory, place)),
  ];
}

function installed(name: string, from: string): string | undefined {
  const place = path.join(from, "node_modules", name);
  if (existsSync(place)) return realpathSync(place);
  const above = path.dirname(from);
  return above === from ? undefined : installed(name, above);
}

function filesBelow(directory: string, into: string): [string, string][] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry): [string, string][] => {
    const file = path.join(directory, entry.name);
    const name = `${into}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : filesBelow(file, name);
    return entry.isFile() && !NOT_RUN.test(entry.name) ? [[name, file]] : [];
  });
}

function programFiles(): [string, string][] {
  const found = PROGRAMS.flatMap((name): [string, string][] => {
    const places = PATH.split(":").map((directory) => path.join(directory, name));
    const file = places.find((place) => existsSync(place));
    return file === undefined ? [] : [[`usr/bin/${name}`, realpathSync(file)]];
  });
  if (found.length === 0) return [];
  const libraries = dynamicLibraries(found.map(([, file]) => file));
  return [...found, ...libraries.map((file): [string, string] => [file.slice(1), realpathSync(file)])];
}
