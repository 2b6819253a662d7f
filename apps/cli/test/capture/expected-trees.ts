/** Reads the reviewed trees of test/fixtures/harness-traces/expected-trees.txt, whose head explains the form. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface ExpectedCall {
  readonly id: number;
  readonly thread: string;
  readonly parent: number | null;
  readonly relation: string;
  readonly role: string;
}

const FOLDER = fileURLToPath(new URL("../../../../test/fixtures/harness-traces/", import.meta.url));
const ENDING = ".jsonl";

export const recordings = readdirSync(FOLDER)
  .filter((name) => name.endsWith(ENDING))
  .map((name) => name.slice(0, -ENDING.length));

export function fileOf(recording: string): string {
  return `${FOLDER}${recording}${ENDING}`;
}

/** Trees by recording. */
export function expectedTrees(): Map<string, ExpectedCall[]> {
  const trees = new Map<string, ExpectedCall[]>();
  let calls: ExpectedCall[] = [];
  for (const line of readFileSync(`${FOLDER}expected-trees.txt`, "utf8").split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    if (line.startsWith(" ")) calls.push(...readCalls(line.trim().split(" ")));
    else {
      calls = [];
      trees.set(line, calls);
    }
  }
  return trees;
}

function readCalls([ids, relation, ...rest]: readonly string[]): ExpectedCall[] {
  const [first, last = first] = ids!.split("..").map(Number);
  const parent = rest.find((word) => /^\d+$/.test(word));
  const thread = rest.find((word) => word.startsWith("@"))?.slice(1);
  const role = rest.find((word) => word === "excluded" || word === "context-only");
  const known = [parent, thread && `@${thread}`, role].filter(Boolean).length;
  if (known !== rest.length) throw new Error(`expected-trees.txt: ${ids} ${relation} ${rest.join(" ")}`);
  return Array.from({ length: last! - first! + 1 }, (_, at) => ({
    id: first! + at,
    thread: thread ?? "main",
    parent: parent === undefined ? null : Number(parent),
    relation: relation!,
    role: role ?? "train",
  }));
}
