/**
 * Owns the directory name of an instance: the same id gives the same name, wherever it is imported. Does not
 * look for collisions (import-tasks.ts).
 */
import { createHash } from "node:crypto";

/** Printable ASCII without spaces, beginning with a letter, a digit or `_`. */
const INSTANCE_ID = /^[A-Za-z0-9_][\x21-\x7e]{0,511}$/;
const MAX_LENGTH = 128;
const HASH_LENGTH = 8;

/**
 * What may not stand in a directory name becomes `-`; a longer id is cut and ends in eight digits of its SHA-256.
 * Undefined for what is no id.
 */
export function taskIdOf(instance: string): string | undefined {
  if (!INSTANCE_ID.test(instance)) return undefined;
  const id = instance.replace(/[^A-Za-z0-9_-]/g, "-");
  if (id.length <= MAX_LENGTH) return id;
  const hash = createHash("sha256").update(instance).digest("hex").slice(0, HASH_LENGTH);
  return `${id.slice(0, MAX_LENGTH - HASH_LENGTH - 1)}-${hash}`;
}
