/**
 * Owns tests/expected.json: the names of the tests that decide a verdict. It stays outside every agent's
 * sandbox. Does not run tests or judge results.
 */
import { readFileSync } from "node:fs";
import { MortiseError } from "@mortise/contracts";
import { RESULT_FORMATS } from "@mortise/grading";
import { z } from "zod";

const lists = {
  schema: z.literal(1),
  failToPass: z.array(z.string().min(1)).min(1),
  passToPass: z.array(z.string().min(1)),
};
const ExpectedFile = z
  .discriminatedUnion("format", [
    z.strictObject({
      /** How tests/test.sh prints results; packages/grading has a parser for each. */
      format: z.enum(RESULT_FORMATS),
      ...lists,
    }),
    z.strictObject({
      /** tests/test.sh prints the log of a test runner; tests/config.json is the record it is graded against. */
      format: z.literal("log"),
      /** Name of the log parser of packages/grading. */
      parser: z.string().min(1),
      ...lists,
    }),
  ])
  .refine((file) => new Set([...file.failToPass, ...file.passToPass]).size === countNames(file), {
    message: "names a test twice",
    path: ["failToPass"],
  });

/** `failToPass` fail before and pass after the repair; `passToPass` pass before and after. */
export type ExpectedTests = z.infer<typeof ExpectedFile>;

function countNames(file: { failToPass: string[]; passToPass: string[] }): number {
  return file.failToPass.length + file.passToPass.length;
}

/** Reads the file; undefined when there is none. Throws MORTISE_TASK_INVALID when it is malformed. */
export function readExpectedTests(path: string): ExpectedTests | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return parseJsonFile(path, text, ExpectedFile);
}

/** Parses a JSON file by a schema. Throws MORTISE_TASK_INVALID naming the path and the first wrong field. */
export function parseJsonFile<S extends z.ZodType>(path: string, text: string, schema: S): z.infer<S> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_TASK_INVALID",
      message: `${path}: not valid JSON.`,
      fix: `Correct ${path}, or generate it again.`,
      cause,
      detail: { path },
    });
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const field = issue.path.join(".");
  throw new MortiseError({
    code: "MORTISE_TASK_INVALID",
    message: `${path}: ${field}: ${issue.message}.`,
    fix: `Correct ${field || "the file"} in ${path}, or generate it again.`,
    detail: { path, field },
  });
}
