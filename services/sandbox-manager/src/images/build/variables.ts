/**
 * Owns variables in the names of base images: arguments declared before the first FROM, with the values a site gives.
 * A name that cannot be told is refused; nothing of the host's environment is looked at.
 */
import type { Instruction } from "./dockerfile.js";
import { refused } from "./dockerfile.js";

export type BuildArguments = ReadonlyMap<string, string>;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const VARIABLE =
  /\$(?:(?<plain>[A-Za-z_][A-Za-z0-9_]*)|\{(?<name>[A-Za-z_][A-Za-z0-9_]*)(?::(?<sign>[-+])(?<word>[^}$]*))?\})/g;

/** Values of the arguments that stand before the first FROM. */
export function globalArguments(
  instructions: readonly Instruction[],
  given: Readonly<Record<string, string>>,
): BuildArguments {
  const values = new Map<string, string>();
  for (const { name, rest } of instructions) {
    if (name === "FROM") break;
    for (const { key, value } of name === "ARG" ? declarations(rest) : []) {
      const known = Object.hasOwn(given, key) ? given[key]! : value;
      if (known !== undefined) values.set(key, known);
    }
  }
  return values;
}

/** Names of all arguments a Dockerfile declares, in whatever stage. */
export function declaredArguments(instructions: readonly Instruction[]): Set<string> {
  const all = instructions.filter(({ name }) => name === "ARG").flatMap(({ rest }) => declarations(rest));
  return new Set(all.map(({ key }) => key));
}

export function expanded(text: string, values: BuildArguments, line: number): string {
  const result = text.replace(VARIABLE, (...match) => {
    const { plain, name, sign, word } = match.at(-1) as Record<string, string | undefined>;
    const key = (plain ?? name)!;
    const value = values.get(key) ?? "";
    if (sign === "+") return value === "" ? "" : word!;
    if (value !== "") return value;
    if (sign === "-") return word!;
    throw refused(line, `the base image depends on ${key}, which has no value`, argumentFix(key));
  });
  if (/["'\\$`\s]/.test(result)) throw refused(line, `${JSON.stringify(result)} is no name of an image`);
  return result;
}

function argumentFix(key: string): string {
  return `Give ARG ${key} a default before the first FROM, or set sandbox.images.build.args.${key}.`;
}

function declarations(rest: string): { key: string; value: string | undefined }[] {
  const words = rest.match(/[^\s="']+(?:=(?:"[^"]*"|'[^']*'|[^\s"'])*)?/g) ?? [];
  return words.flatMap((word) => {
    const at = word.indexOf("=");
    const key = at < 0 ? word : word.slice(0, at);
    if (!NAME.test(key)) return [];
    return [{ key, value: at < 0 ? undefined : word.slice(at + 1).replace(/["']/g, "") }];
  });
}
