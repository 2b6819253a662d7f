/**
 * Owns what a sandbox may be given by path: which host directory a mount shows, and which paths inside can be
 * mounted over. Does not mount.
 */
import { statSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { type Mount, type SandboxSpec, WORKSPACE } from "./types.js";

/** The host directory a mount shows. Throws MORTISE_SANDBOX_SETUP when there is none. */
export function sourceDirectory({ source, target }: Mount): string {
  const directory = typeof source === "string" ? source : source.directory;
  if (directory === undefined) throw refused(`mount at ${target}`, "its tree is part of an image");
  if (!path.isAbsolute(directory) || !statSync(directory, { throwIfNoEntry: false })?.isDirectory())
    throw refused(`mount at ${target}`, `${JSON.stringify(directory)} is no directory of this host`);
  return directory;
}

/** Throws MORTISE_SANDBOX_SETUP for a path of the specification that is not plain and absolute. */
export function checkPaths(spec: SandboxSpec): void {
  checkPath("workdir", spec.workdir ?? WORKSPACE);
  for (const { target } of spec.mounts) checkPath("mounts.target", target);
  for (const { target, bytes } of spec.scratch ?? []) {
    checkPath("scratch.target", target);
    if (!Number.isSafeInteger(bytes) || bytes < 1) throw refused("scratch.bytes", `${bytes} is no size`);
  }
}

function checkPath(field: string, given: string): void {
  if (!path.isAbsolute(given) || path.normalize(given) !== given || given === "/" || /[\0\n]|\/$/.test(given))
    throw refused(field, `${JSON.stringify(given)} is not an absolute path below / without "." and ".."`);
}

function refused(field: string, why: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message: `${field}: ${why}.` });
}
