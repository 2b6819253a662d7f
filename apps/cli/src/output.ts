/**
 * Owns how a command ends: its result on standard output, an error with code, field and fix, the exit code.
 * Progress and notes go to standard error, so that standard output is the result and nothing else.
 */
import { MortiseError } from "@mortise/contracts";
import { operatorsError, withoutCredentials } from "@mortise/kernel";
import { Interrupted } from "./site/interrupts.js";

export const SCHEMA = 1;
export const EXIT_FAILURE = 1;
/** The operator can mend it: a wrong value, a missing file, an old server. */
export const EXIT_OPERATOR = 2;

export interface OutputOptions {
  readonly json: boolean;
}

/** The result of a command: one JSON object with the schema number, or the given lines. */
export function printResult(options: OutputOptions, result: object, lines: () => readonly string[]): void {
  if (options.json) console.log(JSON.stringify({ schema: SCHEMA, ...result }));
  else for (const line of lines()) console.log(line);
}

export function note(line: string): void {
  process.stderr.write(`${withoutCredentials(line)}\n`);
}

/** Tells an error and returns the exit code that goes with it. */
export function printError(options: OutputOptions, thrown: unknown): number {
  if (thrown instanceof Interrupted) {
    note(`${thrown.message}; the same command continues`);
    return thrown.exitCode;
  }
  const operators = operatorsError(thrown);
  const error = operators ?? thrown;
  if (!(error instanceof MortiseError)) {
    note(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return EXIT_FAILURE;
  }
  const field = [error.detail.field, error.detail.source, error.detail.path].find(
    (place) => typeof place === "string",
  );
  note(`${error.code}${field === undefined ? "" : ` (${field})`}: ${error.message}\n  fix: ${error.fix}`);
  if (options.json) {
    const { code, fix } = error;
    const message = withoutCredentials(error.message);
    console.log(
      JSON.stringify({
        schema: SCHEMA,
        error: { code, ...(field === undefined ? {} : { field }), message, fix },
      }),
    );
  }
  return operators !== undefined || field === "NATS_URL" ? EXIT_OPERATOR : EXIT_FAILURE;
}
