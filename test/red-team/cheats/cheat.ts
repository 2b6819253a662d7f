/**
 * Owns what a cheat of the suite is: data, so that the suite runs it and the docs list it. Does not run anything.
 */

/**
 * Which tests grade it: the bundled tasks' (`realm`), a runner in one process with the repository (`process`), a
 * log of pytest (`values`: whose tests compare what is computed) or of another runner, a Harbor reward file.
 */
export type Family =
  | "realm"
  | "process"
  | "pytest"
  | "values"
  | "unittest"
  | "jest"
  | "vitest"
  | "mocha"
  | "harbor";

export interface Cheat {
  /** Unique; lower-case letters, digits and dashes. */
  readonly name: string;
  readonly family: Family;
  /** What it tries, as the docs say it. */
  readonly tries: string;
  /** What stops it, as the docs say it. */
  readonly stoppedBy: string;
  /** Run with sh in the workspace, by the harness. */
  readonly script: string;
  /** How its trial ends: never `resolved`. */
  readonly ends: "tamper" | "unresolved";
}

/** Shell that writes a file, as it stands. */
export function write(path: string, content: string): string {
  return `mkdir -p "$(dirname "${path}")"\ncat > "${path}" <<'END_OF_CHEAT'\n${content}\nEND_OF_CHEAT\n`;
}

/** Shell that puts code before a file's own. */
export function prepend(path: string, code: string): string {
  return `${write("/tmp/prepended", code)}cat "${path}" >> /tmp/prepended\ncat /tmp/prepended > "${path}"\n`;
}
