/** Owns what every backend refuses in a specification, and how a sandbox that could not be made is told. */
import { MortiseError } from "@mortise/contracts";
import { checkPaths } from "./mount-source.js";
import type { SandboxSpec } from "./types.js";

/** It becomes part of names of directories, cgroups and containers. */
const SANDBOX_ID = /^[A-Za-z0-9_-]{1,100}$/;

export function setupError(message: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message });
}

/** Throws MORTISE_SANDBOX_SETUP for an id or a path that cannot be, and for an id that is taken. */
export function checkSpec(spec: SandboxSpec, isTaken: boolean): void {
  if (!SANDBOX_ID.test(spec.id)) throw setupError(`sandbox id ${JSON.stringify(spec.id)} is not allowed`);
  if (isTaken) throw setupError(`sandbox ${spec.id} exists already`);
  checkPaths(spec);
}

/**
 * What a failed creation rejects with: the cause itself where it is an error of ours, else MORTISE_SANDBOX_SETUP.
 * @param sandbox its id, and what else names it
 */
export function setupFailure(sandbox: string, cause: unknown): MortiseError {
  if (cause instanceof MortiseError) return cause;
  return new MortiseError({
    code: "MORTISE_SANDBOX_SETUP",
    message: `sandbox ${sandbox}: ${cause instanceof Error ? cause.message : String(cause)}`,
    cause,
  });
}
