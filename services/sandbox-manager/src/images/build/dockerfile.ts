/**
 * Owns reading a Dockerfile into its instructions, as the engine's classic builder reads it: comments and continued
 * lines. Words are not interpreted here (rules.ts), and nothing is run.
 *
 * What only BuildKit understands is refused, so that no reading of ours can differ from the builder's.
 */
import { MortiseError } from "@mortise/contracts";

export interface Instruction {
  /** Upper case. */
  readonly name: string;
  /** `--name=value` words that come first, and what is after them, lines joined. */
  readonly flags: readonly string[];
  readonly rest: string;
  /** Of the file, from 1. */
  readonly line: number;
  readonly lastLine: number;
}

export interface Dockerfile {
  readonly lines: readonly string[];
  readonly instructions: readonly Instruction[];
}

const MAX_BYTES = 1024 * 1024;
const INSTRUCTIONS: ReadonlySet<string> = new Set(
  "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR".split(
    " ",
  ),
);
const ESCAPE_DIRECTIVE = /^\s*#\s*escape\s*=\s*(?!\\\s*$)/i;
/** A document in the file, as BuildKit takes it; three signs are a shell's own here-string. */
const HEREDOC = /(?:^|\s)\d*<<-?["']?[A-Za-z_]/;

/** Throws MORTISE_TASK_BUILD that names the line. */
export function parseDockerfile(text: string): Dockerfile {
  if (Buffer.byteLength(text) > MAX_BYTES) throw refused(1, `it has over ${MAX_BYTES} bytes`);
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  checkEscape(lines);
  const instructions: Instruction[] = [];
  for (let at = 0; at < lines.length; at++) {
    if (isSkipped(lines[at]!)) continue;
    const line = at + 1;
    let joined = "";
    for (; at < lines.length; at++) {
      const piece = lines[at]!;
      // Within a continued instruction, comments and empty lines are passed over.
      if (joined !== "" && isSkipped(piece)) continue;
      const continued = beforeEscape(piece);
      joined += continued ?? piece;
      if (continued === undefined) break;
    }
    instructions.push(instructionOf(joined, line, Math.min(at + 1, lines.length)));
  }
  if (!instructions.some(({ name }) => name === "FROM")) throw refused(1, "it has no FROM");
  return { lines, instructions };
}

/** An instruction in a string, such as a trigger of a base image. */
export function instructionOf(text: string, line: number, lastLine = line): Instruction {
  const [, word = "", after = ""] = /^\s*(\S+)\s*(.*)$/s.exec(text) ?? [];
  const name = word.toUpperCase();
  if (!INSTRUCTIONS.has(name))
    throw refused(line, `${JSON.stringify(word.slice(0, 40))} is no instruction of the classic builder`);
  const flags: string[] = [];
  let rest = after.trim();
  if (["ADD", "COPY", "FROM", "RUN", "HEALTHCHECK"].includes(name))
    for (let flag = FLAG.exec(rest); flag !== null; flag = FLAG.exec(rest)) {
      flags.push(flag[0]);
      rest = rest.slice(flag[0].length).trimStart();
    }
  const isBuildKits = name === "RUN" && flags.length > 0;
  if (isBuildKits || (["RUN", "COPY", "ADD"].includes(name) && HEREDOC.test(rest)))
    throw refused(line, `${isBuildKits ? flags[0] : "<<"} needs BuildKit, which is not used here`);
  return { name, flags, rest, line, lastLine };
}

const FLAG = /^--\S+/;

/** @param line of the Dockerfile, from 1 */
export function refused(line: number, why: string, fix?: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_BUILD",
    message: `environment/Dockerfile, line ${line}: ${why}.`,
    ...(fix === undefined ? {} : { fix }),
    detail: { field: "environment/Dockerfile", line },
  });
}

/** Versions of the builder differ in where such a line counts, so that anything but the usual one is refused anywhere. */
function checkEscape(lines: readonly string[]): void {
  const at = lines.findIndex((line) => ESCAPE_DIRECTIVE.test(line));
  if (at >= 0) throw refused(at + 1, "an escape sign other than \\ is not supported");
}

function isSkipped(line: string): boolean {
  return /^\s*(?:#|$)/.test(line);
}

/** The line without its last character when that continues it, else undefined. */
function beforeEscape(line: string): string | undefined {
  return /^(.*)\\[ \t]*$/s.exec(line)?.[1];
}
