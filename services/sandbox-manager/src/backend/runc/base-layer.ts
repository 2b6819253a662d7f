/**
 * Owns the one layer that is put over a pulled image so that a sandbox can be made of it: the places its runtime
 * mounts to, and a name for the agent's user. Everything the image has stays as it is: a directory keeps its owner
 * and mode, accounts are added, none is changed.
 */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { sha256 } from "../../patch/patch.js";
import { SANDBOX_UID } from "../types.js";
import { lookUp } from "./layers.js";

/** Changes when the layer is made in another way. */
const FORMAT = "1";
const DIRECTORIES = ["proc", "dev", "etc", "tmp"];
/** Mounted over in every sandbox; here so that nothing has to be made in its own layer. */
const MOUNTED_FILES = ["etc/hosts", "etc/resolv.conf"];
const EVERYONE_WRITES = 0o1777;

/** The layer for an image's stack, made when first asked for. `root` holds such layers. */
export function baseLayer(root: string, layers: readonly string[]): string {
  const directory = path.join(root, sha256(`${FORMAT}\n${layers.join("\n")}`).slice(0, 32));
  if (existsSync(directory)) return directory;
  const unfinished = path.join(root, `unfinished-${process.pid}`);
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true, mode: 0o755 });
  for (const name of DIRECTORIES) makeDirectory(layers, unfinished, name);
  for (const name of MOUNTED_FILES) {
    if (existsSync(path.join(unfinished, "etc")) && lookUp(layers, `/${name}`).kind === "nothing")
      writeFileSync(path.join(unfinished, name), "", { mode: 0o644 });
  }
  addAccount(layers, unfinished, "etc/passwd", `agent:x:${SANDBOX_UID}:${SANDBOX_UID}::/tmp:/bin/sh`);
  addAccount(layers, unfinished, "etc/group", `agent:x:${SANDBOX_UID}:`);
  renameSync(unfinished, directory);
  return directory;
}

/** As the image has it, or with the usual mode. A link or file of that name is the image's own matter. */
function makeDirectory(layers: readonly string[], layer: string, name: string): void {
  const place = lookUp(layers, `/${name}`);
  if (place.kind !== "directory" && place.kind !== "nothing") return;
  const made = path.join(layer, name);
  mkdirSync(made);
  const mode = place.kind === "directory" ? place.stat.mode & 0o7777 : undefined;
  if (place.kind === "directory") chownSync(made, place.stat.uid, place.stat.gid);
  chmodSync(made, mode ?? (name === "tmp" ? EVERYONE_WRITES : 0o755));
}

/** Adds a line unless the number has a name already. */
function addAccount(layers: readonly string[], layer: string, name: string, line: string): void {
  if (!existsSync(path.join(layer, "etc"))) return;
  const place = lookUp(layers, `/${name}`);
  if (place.kind !== "nothing" && !(place.kind === "leaf" && place.stat.isFile())) return;
  const present = place.kind === "leaf" ? readFileSync(place.file, "latin1") : "";
  const isNamed = present.split("\n").some((one) => one.split(":")[2] === String(SANDBOX_UID));
  if (isNamed) return;
  const file = path.join(layer, name);
  const separator = present === "" || present.endsWith("\n") ? "" : "\n";
  writeFileSync(file, `${present}${separator}${line}\n`, "latin1");
  const stat = place.kind === "leaf" ? place.stat : undefined;
  chownSync(file, stat?.uid ?? 0, stat?.gid ?? 0);
  chmodSync(file, (stat?.mode ?? 0o644) & 0o7777);
}
