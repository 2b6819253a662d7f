/**
 * Owns finding a nats-server for tests. Does not install one (see the quick start's provisioning).
 */
import { accessSync, constants } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const CACHED = ".mortise/cache/nats-server/nats-server";

/**
 * Looks at MORTISE_NATS_SERVER, the project's cache and PATH, in this order: what the project provisioned is new
 * enough, what a distribution installed may not be. Throws an Error that names every place looked at.
 */
export function findNatsServer(): string {
  const given = process.env.MORTISE_NATS_SERVER;
  const onPath = (process.env.PATH ?? "").split(delimiter).map((directory) => join(directory, "nats-server"));
  const candidates = [...(given === undefined ? [] : [given]), join(projectRoot(), CACHED), ...onPath];
  const found = candidates.find(isExecutable);
  if (found !== undefined) return found;
  throw new Error(
    `No nats-server found: set MORTISE_NATS_SERVER to one of version 2.12 or newer, put it on PATH, or at ${CACHED}.`,
  );
}

/** Tests run from source and from dist; both lie in packages/testkit. */
function projectRoot(): string {
  return join(dirname(fileURLToPath(import.meta.url)), "../../..");
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
