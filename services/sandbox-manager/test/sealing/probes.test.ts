/** Which lines of an answer are looked for, and that all of them are found in any stream. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { distinctiveLines, distinctiveNames } from "../../src/sealing/probes/distinctive.js";
import { probesOf } from "../../src/sealing/probes/probes.js";
import { parseUnifiedDiff, touchedModules } from "../../src/sealing/probes/unified-diff.js";
import { Matcher, MIN_PATTERN_BYTES } from "../../src/sealing/search/matcher.js";
import { BASE_SOURCE, goldPatch, hasGit } from "./repositories.js";

const baseOf = (text: string) => (matcher: Matcher) => {
  const found = new Set<string>();
  matcher.scan(Buffer.from(text), Buffer.byteLength(text), (id) => found.add(id));
  return found;
};
const patchOf = (...lines: string[]) =>
  [
    "--- a/x.py",
    "+++ b/x.py",
    `@@ -1,2 +1,${lines.length + 2} @@`,
    " first = 1",
    ...lines.map((line) => `+${line}`),
    " last = 2",
    "",
  ].join("\n");

describe("distinctive lines", () => {
  test("are long, of several words, and not in the base", () => {
    const known = "this_line_stands_in(the_base, already_today)";
    const files = parseUnifiedDiff(
      patchOf(
        "    }",
        "",
        "x = 1",
        known,
        "    result = compute_canonical_form(of_the_name, strictly=True)",
        "raise ValueError(f'unexpected separator {found} in name')",
        "# Names are compared after folding case and separators",
      ),
    );
    const { lines, distinctiveness } = distinctiveLines("gold", files, baseOf(`a\n  ${known}\nb`));
    expect(lines.map((line) => line.text)).toEqual(
      [
        "result = compute_canonical_form(of_the_name, strictly=True)",
        "# Names are compared after folding case and separators",
        "raise ValueError(f'unexpected separator {found} in name')",
      ].sort((a, b) => lines.findIndex((l) => l.text === a) - lines.findIndex((l) => l.text === b)),
    );
    expect(lines).toHaveLength(3);
    expect(distinctiveness).toEqual({ kind: "gold", nLines: 7, nDistinctive: 3, nProbes: 3 });
    expect(lines[0]?.source).toMatch(/^x\.py:[678]$/);
  });

  test("a patch with none of them is looked for by its hunks, and one with nothing at all says so", () => {
    const hunks = distinctiveLines("gold", parseUnifiedDiff(patchOf("x = 1")), baseOf("first = 1\nlast = 2"));
    expect(hunks.lines).toEqual([{ text: "first = 1\nx = 1\nlast = 2", source: "x.py:1" }]);
    expect(hunks.distinctiveness).toEqual({ kind: "gold", nLines: 1, nDistinctive: 0, nProbes: 1 });
    const nothing = distinctiveLines(
      "gold",
      parseUnifiedDiff(patchOf("x = 1")),
      baseOf("first = 1\nx = 1\nlast = 2"),
    );
    expect(nothing.lines).toEqual([]);
    expect(nothing.distinctiveness.nProbes).toBe(0);
  });

  test("a deletion is looked for by what is left", () => {
    const patch = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,2 @@\n first_line = 1\n-broken = 2\n last_line = 3\n";
    const { lines } = distinctiveLines(
      "gold",
      parseUnifiedDiff(patch),
      baseOf("first_line = 1\nbroken = 2\nlast_line = 3"),
    );
    expect(lines.map((line) => line.text)).toEqual(["first_line = 1\nlast_line = 3"]);
  });

  test("new names are those the base does not have", () => {
    const files = parseUnifiedDiff(patchOf("known_function(brand_new_function)", "short"));
    expect(distinctiveNames(files, baseOf("def known_function(): pass"))).toEqual(["brand_new_function"]);
  });
});

describe("unified diffs", () => {
  test.skipIf(!hasGit)("of git are read: files, added lines with numbers, both sides of hunks", () => {
    const [file] = parseUnifiedDiff(goldPatch());
    expect(file).toMatchObject({ path: "src/names.py", isDeleted: false });
    expect(file?.hunks[0]?.before).toEqual(BASE_SOURCE.split("\n").slice(0, 6));
    expect(file?.hunks[0]?.added[0]).toEqual({
      text: "    without_separators = replace_runs_of_separators(name.strip())",
      number: 3,
    });
  });

  test("lines that look like headers inside a hunk are lines", () => {
    const patch =
      "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- a comment gone\n+++ an increment come\n same\n--- a/new.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
    const files = parseUnifiedDiff(patch);
    expect(files.map(({ path, isDeleted }) => [path, isDeleted])).toEqual([
      ["q.sql", false],
      ["new.txt", true],
    ]);
    expect(files[0]?.hunks[0]?.added.map(({ text }) => text)).toEqual(["++ an increment come"]);
    expect(touchedModules({ goldPatch: patch })).toEqual(new Set(["q", "new"]));
  });

  test("whatever the text, reading it does not fail", () => {
    fc.assert(
      fc.property(fc.string(), (text) => void parseUnifiedDiff(`--- a\n+++ b\n@@ -1,9 +1,9 @@\n${text}`)),
    );
  });
});

describe("probes", () => {
  test("have ids, sources and digests, and a report holds no text of theirs", () => {
    const base = { scan: baseOf("first = 1\nlast = 2\n"), read: () => "first = 1\nlast = 2\n" };
    const line = "canonical = spelling_without_separators(name, strictly)";
    const { reports, patterns, applied } = probesOf({ goldPatch: patchOf(line) }, base);
    expect(reports[0]).toMatchObject({ id: "gold-1", kind: "gold", source: "x.py:2", nBytes: line.length });
    expect(JSON.stringify(reports)).not.toContain("canonical");
    expect(patterns.every(({ bytes }) => bytes.byteLength >= MIN_PATTERN_BYTES)).toBe(true);
    expect(applied).toEqual([]);
  });

  test("a patch the base already has is noticed", () => {
    const text = "first = 1\nx = y\nlast = 2\n";
    const { applied } = probesOf({ goldPatch: patchOf("x = y") }, { scan: baseOf(text), read: () => text });
    expect(applied).toEqual([{ path: "x.py", source: "x.py:1", kind: "gold" }]);
  });
});

describe("the matcher", () => {
  const small = fc.array(fc.constantFrom(97, 98, 0), { minLength: MIN_PATTERN_BYTES, maxLength: 40 });

  test("finds what indexOf finds, in one piece or many", () => {
    const text = fc.array(fc.constantFrom(97, 98, 0), { maxLength: 400 });
    fc.assert(
      fc.property(
        fc.array(small, { minLength: 1, maxLength: 6 }),
        text,
        fc.integer({ min: 1, max: 50 }),
        (patterns, bytes, size) => {
          const buffer = Buffer.from(bytes);
          const wanted = patterns.map((pattern, i) => ({ id: String(i), bytes: Buffer.from(pattern) }));
          const matcher = new Matcher(wanted);
          const whole = new Set<string>();
          matcher.scan(buffer, buffer.byteLength, (id) => whole.add(id));
          const pieces = new Set<string>();
          const push = matcher.stream((id) => pieces.add(id));
          for (let at = 0; at < buffer.byteLength; at += size) push(buffer.subarray(at, at + size));
          const expected = new Set(
            wanted.filter((pattern) => buffer.includes(pattern.bytes)).map(({ id }) => id),
          );
          expect(whole).toEqual(expected);
          expect(pieces).toEqual(expected);
        },
      ),
    );
  });

  test("refuses a pattern that is too short, and without patterns finds nothing", () => {
    expect(() => new Matcher([{ id: "x", bytes: Buffer.from("short") }])).toThrow(RangeError);
    new Matcher([]).scan(Buffer.from("text"), 4, () => expect.unreachable());
  });
});
