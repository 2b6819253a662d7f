/** Owns docs/reference/config.md: every field of the configuration files, from the schemas that check them. */
import { code, page, table } from "./markdown.mjs";

/** The fields of a JSON schema, depth first, as [path, schema, required]; a table's default reaches its fields. */
function* fields(schema, prefix = "") {
  const required = new Set(schema.required ?? []);
  for (const [name, own] of Object.entries(schema.properties ?? {})) {
    const path = `${prefix}${name}`;
    const inherited = schema.default?.[name];
    const field = inherited === undefined ? own : { ...own, default: inherited };
    const options = field.oneOf?.filter((option) => option.properties?.kind !== undefined);
    if (options?.length > 0) {
      yield* kindFields(options, path, field.default);
      continue;
    }
    yield [path, field, required.has(name)];
    yield* fields(field, `${path}.`);
  }
  const { additionalProperties: named } = schema;
  if (named?.anyOf !== undefined) yield* shapeFields(named.anyOf, `${prefix}<name>`);
  else if (typeof named === "object") yield* fields(named, `${prefix}<name>.`);
}

/** A section of one of several shapes, each known by its first field: each field once, with the shapes that have it. */
function* shapeFields(shapes, path) {
  const nameOf = (shape) => Object.keys(shape.properties)[0];
  const names = new Set(shapes.flatMap((shape) => Object.keys(shape.properties)));
  for (const name of names) {
    const having = shapes.filter((shape) => shape.properties[name] !== undefined);
    const meanings = Map.groupBy(having, (shape) => shape.properties[name].description);
    const description = [...meanings]
      .map(([text, those]) =>
        those.length === shapes.length
          ? text
          : `With ${those.map((one) => code(nameOf(one))).join(", ")}: ${text}`,
      )
      .join(" ");
    const isRequired = having.every((shape) => shape.required?.includes(name));
    yield [`${path}.${name}`, { ...having[0].properties[name], description }, isRequired];
    yield* fields(having[0].properties[name], `${path}.${name}.`);
  }
}

/** A section with a `kind`: each field once, with the kinds that have it. */
function* kindFields(options, path, fallback) {
  const kinds = options.map((option) => option.properties.kind);
  const meaning = kinds.map((kind) => `${code(kind.const)}: ${kind.description ?? ""}`).join(" ");
  yield [
    `${path}.kind`,
    { enum: kinds.map((kind) => kind.const), default: fallback?.kind, description: meaning },
    true,
  ];
  const names = new Set(options.flatMap((option) => Object.keys(option.properties)));
  names.delete("kind");
  for (const name of names) {
    const having = options.filter((option) => option.properties[name] !== undefined);
    const isRequired = having.every((option) => option.required?.includes(name));
    const meanings = Map.groupBy(having, (option) => option.properties[name].description);
    const description = [...meanings]
      .map(
        ([text, those]) => `${those.map((option) => code(option.properties.kind.const)).join(", ")}: ${text}`,
      )
      .join(" ");
    yield [`${path}.${name}`, { ...having[0].properties[name], description }, isRequired];
  }
}

function typeOf(field) {
  if (field.enum !== undefined) return field.enum.map((value) => code(value)).join(", ");
  if (field.type === "array") return `array of ${typeOf(field.items)}`;
  if (
    field.type === "object" &&
    typeof field.additionalProperties === "object" &&
    field.properties === undefined
  ) {
    return "table";
  }
  return [field.type, rangeOf(field)].filter(Boolean).join(" ");
}

function rangeOf({ minimum, maximum, exclusiveMinimum, pattern }) {
  // Number.MAX_SAFE_INTEGER is how the schema says "no upper bound" for integers.
  const upper = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  const lower = minimum === -Number.MAX_SAFE_INTEGER ? undefined : minimum;
  if (pattern !== undefined) return `matching ${code(pattern)}`;
  if (exclusiveMinimum !== undefined) return `> ${exclusiveMinimum}`;
  if (lower !== undefined && upper !== undefined) return `${lower} to ${upper}`;
  if (lower !== undefined) return `≥ ${lower}`;
  return upper === undefined ? "" : `≤ ${upper}`;
}

function rows(schema) {
  return [...fields(schema)]
    .filter(([, field]) => field.properties === undefined)
    .map(([path, field, required]) => [
      code(path),
      typeOf(field),
      field.default === undefined ? (required ? "required" : "none") : code(JSON.stringify(field.default)),
      field.description ?? "",
    ]);
}

/** @param toJsonSchema zod's converter, bound to the input side: defaults make fields optional there. */
export function renderConfig({ SiteConfig, RunConfig, AgentRuntimeConfig }, toJsonSchema) {
  const headings = ["field", "type", "default", "meaning"];
  return page("Configuration", "packages/contracts/src/config", [
    "All files are TOML. An unknown key is refused with the nearest valid name. `--set a.b=value` overrides a " +
      "field; `mortise check` prints the resolved configuration.",
    "## Site file",
    "Where things are on this deployment. Shared by every service and run.",
    table(headings, rows(toJsonSchema(SiteConfig))),
    "## Run file",
    "What one run does. Stored with the run.",
    table(headings, rows(toJsonSchema(RunConfig))),
    "## Agent runtime file",
    "What a remote agent runtime is ([remote-harness.md](../remote-harness.md)).",
    table(headings, rows(toJsonSchema(AgentRuntimeConfig))),
  ]);
}
