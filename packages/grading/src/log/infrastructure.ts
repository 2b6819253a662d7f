/**
 * Owns the signs in a log that the machinery failed, not the code under test. They count only where the run
 * gave no result at all: what is tested may print any of them.
 */
import { forEachLine } from "./lines.js";

const SIGNS: readonly (readonly [reason: string, sign: RegExp])[] = [
  ["no space left on the device", /No space left on device|Disk quota exceeded/],
  [
    "the container engine failed",
    /Error response from daemon|Cannot connect to the Docker daemon|OCI runtime exec failed/,
  ],
  ["no name resolution", /Could not resolve host|Temporary failure in name resolution/],
  [
    "no browser could be started",
    /Failed to launch (?:the )?browser|Failed to connect to the bus|No binary for Chrome/,
  ],
  ["no display", /cannot open display|Missing X server|unable to open X display/],
  ["no memory", /Cannot allocate memory|^Killed$/],
  [
    "the test command is absent",
    /: (?:line \d+: )?\S+: (?:command not found|No such file or directory)$|: not found$/,
  ],
  ["the environment could not be activated", /EnvironmentNameNotFound|Could not find conda environment/],
];
/** Signs are short lines of tools; longer ones are output of tests. */
const MAX_SIGN_CHARACTERS = 1_000;
const SHELL = /^(?:\S*\/)?(?:ba|da|z)?sh: |eval\.sh: |run_tests?\.sh: /;

const ABSENT_COMMAND = "the test command is absent";
/** What is looked at of a log without results: its start and its end, characters. */
const KEPT_CHARACTERS = 131_072;

export class InfrastructureSigns {
  #start = "";
  #end = "";

  /** Takes the next whole lines; keeps the first and the last. */
  keep(block: string): void {
    if (this.#start.length < KEPT_CHARACTERS) this.#start += `${block.slice(0, KEPT_CHARACTERS)}\n`;
    else if (block.length >= KEPT_CHARACTERS) this.#end = `${block.slice(-KEPT_CHARACTERS)}\n`;
    else this.#end = `${this.#end}${block}\n`.slice(-KEPT_CHARACTERS);
  }

  /** What the kept lines say about the machinery. */
  read(): readonly string[] {
    const found = new Set<string>();
    forEachLine(this.#start + this.#end, (line) => {
      const sign = signIn(line);
      if (sign !== undefined) found.add(sign);
    });
    return [...found];
  }
}

function signIn(line: string): string | undefined {
  if (line.length > MAX_SIGN_CHARACTERS) return undefined;
  for (const [reason, sign] of SIGNS)
    if (sign.test(line) && (reason !== ABSENT_COMMAND || SHELL.test(line))) return reason;
  return undefined;
}
