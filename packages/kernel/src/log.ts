/**
 * Owns the log: JSON lines on stdout, one wide event per unit of work.
 * Does not carry secrets: fields with secret names are replaced, and credentials are cut out of URLs.
 */
import { MortiseError } from "@mortise/contracts";
import { type Logger, pino } from "pino";

export type Log = Logger;

const SECRET_FIELDS = [
  "password",
  "pass",
  "token",
  "sessionToken",
  "listenerKey",
  "bearer",
  "authorization",
  "apiKey",
  "secret",
  "privateKey",
];
const URL_CREDENTIALS = /(\w+:\/\/)[^/\s:@]+:[^/\s@]+@/g;

/** Removes `user:password@` from every URL in a text. */
export function withoutCredentials(text: string): string {
  return text.replace(URL_CREDENTIALS, "$1");
}

export interface LogOptions {
  readonly service: string;
  readonly level?: string;
  /** Where lines go; stdout unless a test wants to read them. */
  readonly destination?: { write(line: string): void };
}

/** A logger whose lines carry `service`. Writing is synchronous, so that the last line before an exit is there. */
export function createLog(options: LogOptions): Log {
  return pino(
    {
      level: options.level ?? "info",
      base: { service: options.service },
      timestamp: () => `,"time":${Date.now()}`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]), censor: "[redacted]" },
      serializers: { err: describeError, error: describeError },
      // At the last edge: an error's message may be quoted in fields and in the text of the line.
      hooks: { streamWrite: (line) => (line.includes("://") ? withoutCredentials(line) : line) },
    },
    options.destination ?? pino.destination({ dest: 1, sync: true }),
  );
}

function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return error;
  const { message } = error;
  const cause =
    error.cause !== undefined && depth < 4 ? { cause: describeError(error.cause, depth + 1) } : {};
  if (error instanceof MortiseError) {
    return { code: error.code, boundary: error.boundary, disposition: error.disposition, message, ...cause };
  }
  return { type: error.name, message, stack: error.stack, ...cause };
}
