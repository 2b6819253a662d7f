/** Owns JSON values like those a client could send by mistake: a good body with one place of it exchanged. */
import fc from "fast-check";

const VALUES = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.constantFrom<unknown>(
      ...["", "text", "function", "custom", "__proto__", "toString", null, true, -1, 1.5, 1e300],
      ...[
        {},
        [],
        [{}],
        [null],
        ["text"],
        [[]],
        { type: "text" },
        { name: "f" },
        { type: "function", name: "f" },
      ],
    ),
  },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
);

type Path = readonly (string | number)[];

/** Any JSON value, or one of `bodies` with a value, somewhere in it, replaced or left out. */
export function anyBody(bodies: readonly unknown[]): fc.Arbitrary<unknown> {
  const places = bodies.flatMap((body) => paths(body).map((path) => ({ body, path })));
  const exchanged = fc
    .tuple(fc.constantFrom(...places), fc.option(VALUES, { nil: undefined }))
    .map(([{ body, path }, value]) => exchange(body, path, value));
  return fc.oneof(
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
    { weight: 9, arbitrary: exchanged },
  );
}

function paths(value: unknown): Path[] {
  if (typeof value !== "object" || value === null) return [];
  const keys: Path = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return keys.flatMap((key) => {
    const inner = (value as Record<string | number, unknown>)[key];
    return [[key], ...paths(inner).map((path) => [key, ...path])];
  });
}

function exchange(body: unknown, path: Path, value: unknown): unknown {
  const copy = structuredClone(body);
  let at = copy as Record<string | number, unknown>;
  for (const key of path.slice(0, -1)) at = at[key] as typeof at;
  const last = path.at(-1)!;
  if (value === undefined && !Array.isArray(at)) delete at[last];
  else at[last] = value ?? null;
  return copy;
}
