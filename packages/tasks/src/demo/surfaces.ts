/**
 * Owns surface variation: the names which the locals of a function may carry, and the renaming itself.
 * Does not change behaviour: a renamed function is the same function (alpha-equivalence).
 */
import { type AnyNode, type Identifier, parse } from "acorn";
import { full } from "acorn-walk";
import { localsOf } from "./mutations.js";

/** New names by old name, for every local of a function. */
export type Renaming = Readonly<Record<string, string>>;

/**
 * The choices for each local the library's target functions use. Short words keep trials short. No name is in
 * two rows, so a renaming cannot make two locals collide, and none is `n`: `0n` would be a BigInt.
 */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  xs: ["xs", "ys", "arr"],
  el: ["el", "v", "it"],
  s: ["s", "t", "acc"],
  lim: ["lim", "k", "cap"],
};

/** Every renaming of the function's locals, in a fixed order. */
export function renamingsOf(functionSource: string): Renaming[] {
  const locals = localsOf(parse(functionSource, { ecmaVersion: "latest" })).map((scope) => scope.name);
  return locals.reduce<Renaming[]>(
    (partial, local) =>
      partial.flatMap((renaming) =>
        (CHOICES[local] ?? [local]).map((name) => ({ ...renaming, [local]: name })),
      ),
    [{}],
  );
}

/** Renames the locals of a function that has no nested function and no property of the same name. */
export function renameLocals(functionSource: string, renaming: Renaming): string {
  const identifiers: Identifier[] = [];
  full(parse(functionSource, { ecmaVersion: "latest" }), (node) => {
    const current = node as AnyNode;
    if (current.type === "Identifier" && Object.hasOwn(renaming, current.name)) identifiers.push(current);
  });
  identifiers.sort((a, b) => a.start - b.start);
  let text = "";
  let copiedTo = 0;
  for (const identifier of identifiers) {
    if (identifier.start < copiedTo) continue;
    text += functionSource.slice(copiedTo, identifier.start) + renaming[identifier.name];
    copiedTo = identifier.end;
  }
  return text + functionSource.slice(copiedTo);
}

/** Applies a renaming to the words of an instruction. */
export function renameWords(sentence: string, renaming: Renaming): string {
  return sentence.replace(/[A-Za-z]+/g, (word) => renaming[word] ?? word);
}
