/** Owns the recordings of real harnesses as tests read them: requests, and what the scripted server played. */
import { readdirSync, readFileSync } from "node:fs";

const DIRECTORY = new URL("../../../test/fixtures/harness-traces/", import.meta.url);

// biome-ignore lint/suspicious/noExplicitAny: what a harness sent, whatever it is
type Json = any;

export interface Exchange {
  readonly recording: string;
  readonly id: number;
  readonly body: Json;
  /** What was played as the reply; undefined where the recording has none. */
  readonly step: Json;
}

/** Every exchange on a route, in the order of the recordings. */
export function exchanges(route: string): Exchange[] {
  const found = readdirSync(DIRECTORY)
    .filter((name) => name.endsWith(".jsonl"))
    .sort()
    .flatMap((name) => exchangesOf(name.slice(0, -".jsonl".length), route));
  if (found.length === 0) throw new Error(`no recording has a request to ${route}`);
  return found;
}

export function exchangesOf(recording: string, route: string): Exchange[] {
  const lines = readFileSync(new URL(`${recording}.jsonl`, DIRECTORY), "utf8")
    .split("\n")
    .filter(Boolean);
  const events: Json[] = lines.map((line) => JSON.parse(line));
  const steps = new Map(events.filter(({ ev }) => ev === "step").map(({ id, step }) => [id, step]));
  return events
    .filter(({ ev, method, url }) => ev === "req" && method === "POST" && url.split("?")[0].endsWith(route))
    .map(({ id, body }) => ({ recording, id, body, step: steps.get(id) }));
}
