/**
 * Owns changing environment.docker_image in the text of a task.toml and nothing else of it: comments and order stay.
 */
import { isDeepStrictEqual } from "node:util";
import { MortiseError } from "@mortise/contracts";
import { parse } from "smol-toml";

const TABLE = /^\s*\[environment\]\s*(?:#.*)?$/;
const NEXT_TABLE = /^\s*\[/;
const KEY = /^\s*(?:docker_image|"docker_image")\s*=/;

/** The text with that image. Throws MORTISE_TASK_INVALID where the table is written in a way this does not change. */
export function withDockerImage(text: string, image: string): string {
  const lines = text.split("\n");
  const line = `docker_image = ${JSON.stringify(image)}`;
  const at = lines.findIndex((one) => TABLE.test(one));
  if (at < 0) {
    const gap = text === "" || text.endsWith("\n") ? "" : "\n";
    return checked(text, `${text}${gap}\n[environment]\n${line}\n`, image);
  }
  const next = lines.findIndex((one, index) => index > at && NEXT_TABLE.test(one));
  const end = next < 0 ? lines.length : next;
  const key = lines.findIndex((one, index) => index > at && index < end && KEY.test(one));
  if (key < 0) lines.splice(at + 1, 0, line);
  else lines[key] = line;
  return checked(text, lines.join("\n"), image);
}

/** Read back: the image is there, and all else is as it was. */
function checked(before: string, after: string, image: string): string {
  const expected = parse(before);
  const environment = { ...(expected.environment as object | undefined), docker_image: image };
  let found: unknown;
  try {
    found = parse(after);
  } catch {
    found = undefined;
  }
  if (isDeepStrictEqual(plain(found), plain({ ...expected, environment }))) return after;
  throw new MortiseError({
    code: "MORTISE_TASK_INVALID",
    message: "task.toml: environment.docker_image cannot be written without changing other keys.",
    fix: "Write environment as a table of its own, [environment] with one key a line.",
    detail: { field: "environment.docker_image" },
  });
}

/** Without prototypes and the order of keys, which TOML does not have. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (_, inner: unknown) =>
      typeof inner === "bigint"
        ? `${inner}n`
        : inner !== null && typeof inner === "object" && !Array.isArray(inner)
          ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
          : inner,
    ),
  );
}
