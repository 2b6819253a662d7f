/**
 * Owns writing the bodies of the fuzz suite as JSON text, which holds what JavaScript values cannot: numbers
 * beyond a double, keys named twice, nesting deeper than a serialiser's stack, a key `__proto__`. Bodies are a
 * tree of their own, so that mutations work on what is written, not on objects.
 */

/** A JSON value as it will be written. */
export type Node =
  | { kind: "raw"; text: string }
  | { kind: "list"; items: Node[] }
  | { kind: "record"; entries: [key: string, value: Node][] };

export function nodeOf(value: unknown): Node {
  if (Array.isArray(value)) return { kind: "list", items: value.map(nodeOf) };
  if (typeof value === "object" && value !== null)
    return { kind: "record", entries: Object.entries(value).map(([key, inner]) => [key, nodeOf(inner)]) };
  return { kind: "raw", text: JSON.stringify(value) };
}

/** A copy that shares nothing. */
export function copyOf(node: Node): Node {
  if (node.kind === "list") return { kind: "list", items: node.items.map(copyOf) };
  if (node.kind === "record")
    return { kind: "record", entries: node.entries.map(([key, value]) => [key, copyOf(value)]) };
  return { ...node };
}

export function jsonText(node: Node): string {
  if (node.kind === "list") return `[${node.items.map(jsonText).join(",")}]`;
  if (node.kind === "record")
    return `{${node.entries.map(([key, value]) => `${JSON.stringify(key)}:${jsonText(value)}`).join(",")}}`;
  return node.text;
}

/** Characters of a node's text, without those of keys and separators; at least 1. */
export function lengthOf(node: Node): number {
  if (node.kind === "raw") return node.text.length;
  const inner = node.kind === "list" ? node.items : node.entries.map(([, value]) => value);
  return inner.reduce((sum, value) => sum + lengthOf(value), 1);
}

/** Every place of a tree that can be replaced, the root excepted. */
export interface Place {
  readonly holder: Exclude<Node, { kind: "raw" }>;
  readonly at: number;
  /** Keys down to it, indices as `*`: equal for values that play the same part. */
  readonly path: string;
}

export function placesOf(root: Node): Place[] {
  const places: Place[] = [];
  const walk = (holder: Node, path: string) => {
    if (holder.kind === "list")
      for (const [at, item] of holder.items.entries()) {
        places.push({ holder, at, path: `${path}.*` });
        walk(item, `${path}.*`);
      }
    else if (holder.kind === "record")
      for (const [at, [key, value]] of holder.entries.entries()) {
        places.push({ holder, at, path: `${path}.${key}` });
        walk(value, `${path}.${key}`);
      }
  };
  walk(root, "");
  return places;
}

export function valueAt({ holder, at }: Place): Node {
  return holder.kind === "list" ? holder.items[at]! : holder.entries[at]![1];
}

export function replaceAt({ holder, at }: Place, value: Node): void {
  if (holder.kind === "list") holder.items[at] = value;
  else holder.entries[at]![1] = value;
}
