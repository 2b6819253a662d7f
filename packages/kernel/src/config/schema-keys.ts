/**
 * Owns finding the keys a zod schema accepts at a path. Does not validate.
 */
import type { z } from "zod";

type Schema = z.core.$ZodType;
type Def = z.core.$ZodTypes["_zod"]["def"];

/** The names allowed in the object at `path`; empty where the schema takes any key or there is no object. */
export function keysAt(schema: Schema, path: readonly PropertyKey[], value: unknown): string[] {
  let candidates = objectsOf(schema, value);
  let here = value;
  for (const key of path) {
    here =
      typeof here === "object" && here !== null ? (here as Record<PropertyKey, unknown>)[key] : undefined;
    const inner = here;
    candidates = candidates
      .flatMap((candidate) => childOf(candidate, key))
      .flatMap((child) => objectsOf(child, inner));
  }
  return [...new Set(candidates.flatMap((candidate) => shapeKeys(candidate)))];
}

function defOf(schema: Schema): Def {
  return schema._zod.def as Def;
}

/** Looks through wrappers and unions to the schemas that can hold children. */
function objectsOf(schema: Schema, value: unknown): Schema[] {
  const def = defOf(schema);
  if ("innerType" in def) return objectsOf(def.innerType as Schema, value);
  switch (def.type) {
    case "pipe":
      return objectsOf(def.in, value);
    case "lazy":
      return objectsOf(def.getter(), value);
    case "intersection":
      return [...objectsOf(def.left, value), ...objectsOf(def.right, value)];
    case "union":
      return chosenOptions(def, value).flatMap((option) => objectsOf(option, value));
    default:
      return [schema];
  }
}

/** In a discriminated union only the option the value names is of interest. */
function chosenOptions(def: z.core.$ZodUnionDef, value: unknown): readonly Schema[] {
  const discriminator = (def as Partial<z.core.$ZodDiscriminatedUnionDef>).discriminator;
  if (discriminator === undefined || typeof value !== "object" || value === null) return def.options;
  const given = (value as Record<string, unknown>)[discriminator];
  const chosen = def.options.filter((option) => {
    const accepted = option._zod.propValues?.[discriminator];
    return accepted?.has(given as z.core.util.Primitive) === true;
  });
  return chosen.length > 0 ? chosen : def.options;
}

function childOf(schema: Schema, key: PropertyKey): Schema[] {
  const def = defOf(schema);
  switch (def.type) {
    case "object": {
      const child = def.shape[key as string] ?? def.catchall;
      return child === undefined ? [] : [child];
    }
    case "record":
      return [def.valueType];
    case "array":
      return [def.element];
    default:
      return [];
  }
}

function shapeKeys(schema: Schema): string[] {
  const def = defOf(schema);
  return def.type === "object" ? Object.keys(def.shape) : [];
}
