/** docs/model-api.md names a test for every item of the checklist; this one sees that they exist. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const ITEMS = 122;

interface Row {
  readonly item: number;
  /** `file › name`, as written. */
  readonly tests: readonly string[];
}

const rows = readFileSync(join(root, "docs", "model-api.md"), "utf8")
  .split("\n")
  .flatMap((line): Row[] => {
    const [, item, , , tests] = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    return /^\d+$/.test(item ?? "") ? [{ item: Number(item), tests: tests!.split("<br>") }] : [];
  });

/** Sources of tests by file name without its ending; names may come in several packages. */
const sources = new Map<string, string>();
for (const folder of ["packages", "services", "apps"])
  for (const member of readdirSync(join(root, folder)))
    for (const path of testFiles(join(root, folder, member, "test"))) {
      const name = basename(path, ".test.ts");
      sources.set(name, (sources.get(name) ?? "") + readFileSync(path, "utf8"));
    }

function testFiles(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".test.ts"))
      .map((path) => join(folder, path));
  } catch {
    return []; // a package without tests
  }
}

test("every item of the checklist is one row", () => {
  expect(rows.map(({ item }) => item)).toEqual(Array.from({ length: ITEMS }, (_, at) => at + 1));
});

test.each(rows)("item $item names tests that exist", ({ tests }) => {
  expect(tests.length).toBeGreaterThan(0);
  for (const reference of tests) {
    const [file, name] = reference.split(" › ") as [string, string];
    const source = sources.get(file) ?? "";
    const quoted = [`"${name}"`, `\`${name}\``, `'${name}'`].some((text) => source.includes(text));
    expect(quoted, reference).toBe(true);
  }
});
