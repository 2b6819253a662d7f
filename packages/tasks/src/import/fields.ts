/**
 * Owns reading the fields of one row under the names and types data sets give them: a list or a list as JSON, one
 * command or several, an object or an object as JSON. Collects what is wrong, so that all of it is told at once.
 * Does not know which fields a data set has.
 */
import { readTestList } from "@mortise/grading";
import type { RowProblem, RowRepair } from "./problems.js";
import { isObject, type Row } from "./rows/row.js";

type Names = string | readonly string[];

// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with one
const ESCAPE_SEQUENCE = /\u001b\[[0-?]*[ -/]*[@-~]/g;

export class RowFields {
  readonly problems: RowProblem[] = [];
  readonly repairs: RowRepair[] = [];
  readonly row: Row;
  /** Values to put in the place of those of the row, in the record that is kept. */
  readonly mended: Record<string, unknown> = {};

  constructor(row: Row) {
    this.row = row;
  }

  get instance(): string | undefined {
    const value = this.row.fields.instance_id;
    return typeof value === "string" && value !== "" ? value : undefined;
  }

  /** The first of the names that has a value; null, NaN and "" are none. */
  find(names: Names): { readonly name: string; readonly value: unknown } | undefined {
    for (const name of typeof names === "string" ? [names] : names) {
      const value = this.row.fields[name];
      if (!isAbsent(value)) return { name, value };
    }
    return undefined;
  }

  /** Text, or a number as text. A blank text is none. */
  text(names: Names): string | undefined {
    const found = this.find(names);
    if (found === undefined) return undefined;
    if (typeof found.value === "number") return String(found.value);
    if (typeof found.value === "string") return found.value.trim() === "" ? undefined : found.value;
    this.refuse(found.name, `is ${kindOf(found.value)}, not text`, `Write ${found.name} as a string.`);
    return undefined;
  }

  required(names: Names): string {
    const text = this.text(names);
    const name = typeof names === "string" ? names : names[0]!;
    if (text === undefined && !this.problems.some(({ field }) => field === name))
      this.refuse(name, "is absent or empty", `Add ${name} to the record.`);
    return text ?? "";
  }

  /** Names of tests, each once and without escape sequences. Empty when the field is absent. */
  tests(names: Names): string[] {
    const found = this.find(names);
    if (found === undefined) {
      this.mended[typeof names === "string" ? names : names[0]!] = [];
      return [];
    }
    const list = readTestList(found.value);
    if (list === undefined) {
      this.refuse(
        found.name,
        "is no list of test names",
        `Write ${found.name} as a list of strings, or as JSON of one.`,
      );
      return [];
    }
    const shown = list.map((name) => name.replace(ESCAPE_SEQUENCE, ""));
    if (shown.some((name, index) => name !== list[index]))
      this.repair(found.name, "has escape sequences in names, which were removed");
    const unique = [...new Set(shown)].filter((name) => name.trim() !== "");
    if (unique.length < shown.length)
      this.repair(found.name, `names ${shown.length - unique.length} tests twice or not at all`);
    this.mended[found.name] = unique;
    return unique;
  }

  /** Shell lines: one text, a list of texts, or JSON of a list. */
  commands(place: string, value: unknown): string[] {
    if (isAbsent(value)) return [];
    const list = listOf(value) ?? [value];
    const commands = list.filter((command): command is string => typeof command === "string");
    if (commands.length < list.length)
      this.refuse(place, "is no command", `Write ${place} as a string or a list of strings.`);
    return commands.filter((command) => command.trim() !== "");
  }

  /** An object, or JSON of one; absent: empty. */
  object(names: Names): Record<string, unknown> {
    const found = this.find(names);
    if (found === undefined) return {};
    const value = typeof found.value === "string" ? fromJson(found.value) : found.value;
    if (isObject(value)) {
      this.mended[found.name] = value;
      return value;
    }
    this.refuse(found.name, "is no object", `Write ${found.name} as an object, or as JSON of one.`);
    return {};
  }

  refuse(field: string, what: string, fix: string): void {
    const { instance } = this;
    this.problems.push({
      place: this.row.place,
      ...(instance === undefined ? {} : { instance }),
      field,
      what,
      fix,
    });
  }

  repair(field: string, what: string): void {
    this.repairs.push({ place: this.row.place, instance: this.instance ?? "", field, what });
  }
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === "" || Number.isNaN(value);
}

function listOf(value: unknown): unknown[] | undefined {
  const list = typeof value === "string" ? fromJson(value) : value;
  return Array.isArray(list) ? list : undefined;
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function kindOf(value: unknown): string {
  return Array.isArray(value)
    ? "a list"
    : `a ${typeof value === "object" ? "group of fields" : typeof value}`;
}
