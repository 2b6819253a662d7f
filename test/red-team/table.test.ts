/** The docs list exactly the cheats of the suite, with how they end. `MORTISE_WRITE_DOCS=1` renews them. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CHEATS, OPEN_CHEATS } from "./cheats/all.js";
import { openTable, stoppedTable } from "./table.js";

const PAGE = join(import.meta.dirname, "../../docs/integrity.md");

test.each([
  ["stopped", stoppedTable()],
  ["open", openTable()],
])("the table of %s cheats in docs/integrity.md is that of the suite", (name, table) => {
  const [start, end] = [`<!-- ${name} -->\n`, `\n<!-- /${name} -->`];
  const page = readFileSync(PAGE, "utf8");
  const [before, rest = ""] = page.split(start);
  const [written, after] = rest.split(end);
  expect(after, `docs/integrity.md has no place ${start.trim()}`).toBeDefined();
  if (process.env.MORTISE_WRITE_DOCS === "1") writeFileSync(PAGE, `${before}${start}${table}${end}${after}`);
  else expect(written).toBe(table);
});

test("no cheat is there twice", () => {
  const names = [...CHEATS, ...OPEN_CHEATS].map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});
