/**
 * Owns reading a configuration: one TOML file, merging of tables, and `--set a.b=c` on top.
 * Does not know what a valid configuration is (see config/parse.ts).
 */
import { readFile } from "node:fs/promises";
import { MortiseError } from "@mortise/contracts";
import { parse, TomlError } from "smol-toml";

export type Table = { [key: string]: unknown };

/**
 * Reads a TOML file into plain objects.
 * Throws MORTISE_CONFIG_UNREADABLE when the file cannot be read and MORTISE_CONFIG_SYNTAX with line and column
 * when it is not TOML.
 */
export async function loadToml(path: string): Promise<Table> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? "unknown error";
    throw new MortiseError({
      code: "MORTISE_CONFIG_UNREADABLE",
      message: `${path}: ${reason}.`,
      cause,
      detail: { path },
    });
  }
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const [reason] = cause.message.split("\n");
    throw new MortiseError({
      code: "MORTISE_CONFIG_SYNTAX",
      message: `${path}:${cause.line}:${cause.column}: ${reason}.`,
      detail: { path, line: cause.line, column: cause.column },
    });
  }
}

/** Merges tables left to right: tables are merged key by key, anything else (arrays too) is replaced. */
export function mergeTables(...tables: readonly Table[]): Table {
  const merged: Table = {};
  for (const table of tables) {
    for (const [key, value] of Object.entries(table)) {
      const present = merged[key];
      define(merged, key, isTable(present) && isTable(value) ? mergeTables(present, value) : value);
    }
  }
  return merged;
}

/**
 * Applies `--set` arguments of the form `a.b.c=value` to a copy of `object`. The value is read as TOML
 * (`3`, `true`, `[1, 2]`, `"text"`) and taken as plain text when it is not TOML.
 * Throws MORTISE_OPERATOR_USAGE when an argument has no `=`, an empty key, or goes through something that is no
 * table.
 */
export function mergeSets(object: unknown, sets: readonly string[]): Table {
  let merged: Table = isTable(object) ? object : {};
  for (const text of sets) {
    const { path, value } = parseSet(text);
    refuseNonTable(merged, path, text);
    merged = mergeTables(
      merged,
      path.reduceRight<unknown>((inner, key) => define({}, key, inner), value) as Table,
    );
  }
  return merged;
}

function parseSet(text: string): { path: string[]; value: unknown } {
  const at = text.indexOf("=");
  const path = text.slice(0, Math.max(0, at)).trim().split(".");
  if (at < 0 || path.some((key) => key === "")) {
    throw new MortiseError({
      code: "MORTISE_OPERATOR_USAGE",
      message: `--set ${text}: expected key.path=value.`,
    });
  }
  const literal = text.slice(at + 1).trim();
  try {
    return { path, value: parse(`value = ${literal}`).value };
  } catch {
    // Not TOML, so it is text somebody did not want to quote twice in a shell.
    return { path, value: literal };
  }
}

function refuseNonTable(root: Table, path: readonly string[], text: string): void {
  let here: unknown = root;
  for (const [depth, key] of path.slice(0, -1).entries()) {
    here = (here as Table)[key];
    if (here === undefined) return;
    if (!isTable(here)) {
      const holder = path.slice(0, depth + 1).join(".");
      throw new MortiseError({
        code: "MORTISE_OPERATOR_USAGE",
        message: `--set ${text}: ${holder} is not a table.`,
      });
    }
  }
}

/** Sets an own property whatever its name: a plain assignment to `__proto__` would not. */
function define(table: Table, key: string, value: unknown): Table {
  return Object.defineProperty(table, key, { value, enumerable: true, writable: true, configurable: true });
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
