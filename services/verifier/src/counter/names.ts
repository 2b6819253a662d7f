/** Owns under which names of a record the results of a test come: runners spell one test in several ways. */
import type { FoundTest } from "./altered-test.js";

/** The names that are surely of this test; none where several tests may be meant. */
export function namesOf(test: FoundTest, expected: readonly string[]): string[] {
  if (test.path.endsWith(".py")) return pythonNames(test, expected);
  const names = expected.filter((name) => isTitle(name, test));
  return names.length === 1 ? names : [];
}

/** pytest's ids with their parameters; unittest's `test_a (module.Class)`; SymPy's bare functions. */
function pythonNames({ path, scope, name }: FoundTest, expected: readonly string[]): string[] {
  const id = [path, ...scope, name].join("::");
  const dotted = [...path.replace(/\.py$/, "").split("/"), ...scope].join(".");
  return expected.filter((spelled) => {
    if (spelled === id || spelled.startsWith(`${id}[`)) return true;
    if (scope.length === 0 && spelled === name) return true;
    const unittest = /^(\w+) \(([\w.]+)\)$/.exec(spelled);
    if (unittest === null || unittest[1] !== name) return false;
    const place = `.${unittest[2]!}`;
    return `.${dotted}`.endsWith(place) || `.${dotted}.${name}`.endsWith(place);
  });
}

/** Whole, or the end of a path of suites or modules. */
function isTitle(spelled: string, { scope, name }: FoundTest): boolean {
  if (spelled === name) return true;
  const paths = [" > ", " - ", " ", ".", "::"].map((mark) => [...scope, name].join(mark));
  return paths.some(
    (path) =>
      spelled === path || [" > ", " - ", " ", ".", "::"].some((mark) => spelled.endsWith(mark + path)),
  );
}
