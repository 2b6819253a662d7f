/**
 * Owns the seeds of the fuzz suite: bodies that harnesses really sent (test/fixtures/harness-traces), and what
 * was seen at each place of them, so that a mutation can put there what fits the place but not the body.
 */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { DialectName } from "@mortise/dialects";
import { type Node, nodeOf, placesOf, valueAt } from "./json-text.js";

const DIRECTORY = fileURLToPath(new URL("../fixtures/harness-traces/", import.meta.url));
/** Of the values seen at one place; the rest says nothing new. */
const SEEN_PER_PLACE = 64;

const DIALECT_OF_ROUTE: Readonly<Record<string, DialectName>> = {
  "/v1/chat/completions": "openai-chat",
  "/v1/responses": "openai-responses",
  "/v1/messages": "anthropic-messages",
};

export interface RecordedBody {
  readonly dialect: DialectName;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Node;
}

interface Recorded {
  ev: string;
  url: string;
  headers: Record<string, string>;
  body: unknown;
}

/** One body of each size and recording and dialect: retries of the same body add nothing. */
export function recordedBodies(): RecordedBody[] {
  const seen = new Set<string>();
  const bodies: RecordedBody[] = [];
  for (const file of readdirSync(DIRECTORY).filter((name) => name.endsWith(".jsonl")))
    for (const line of readFileSync(`${DIRECTORY}${file}`, "utf8").split("\n")) {
      if (line === "") continue;
      const event = JSON.parse(line) as Recorded;
      const dialect = event.ev === "req" ? DIALECT_OF_ROUTE[event.url.split("?", 1)[0]!] : undefined;
      const text = JSON.stringify(event.body);
      if (!dialect || seen.has(text) || typeof event.body !== "object") continue;
      seen.add(text);
      bodies.push({ dialect, headers: event.headers, body: nodeOf(event.body) });
    }
  return bodies;
}

/** What was seen where, and every key that was seen. */
export class Vocabulary {
  readonly keys: readonly string[];
  private readonly values = new Map<string, Node[]>();

  constructor(bodies: readonly RecordedBody[]) {
    const keys = new Set<string>();
    for (const { body } of bodies)
      for (const place of placesOf(body)) {
        if (place.holder.kind === "record") keys.add(place.holder.entries[place.at]![0]);
        const known = this.values.get(place.path) ?? [];
        if (known.length < SEEN_PER_PLACE) known.push(valueAt(place));
        this.values.set(place.path, known);
      }
    this.keys = [...keys];
  }

  seenAt(path: string): readonly Node[] {
    return this.values.get(path) ?? [];
  }

  /** Any value seen anywhere. */
  get paths(): readonly string[] {
    return [...this.values.keys()];
  }
}
