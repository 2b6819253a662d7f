import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { TreeEntry } from "../src/backend/types.js";
import { assertContained, decodePatch, encodePatch } from "../src/patch/codec.js";
import { isContainedLink, isContainedPath, type Patch, PatchBuilder, sha256 } from "../src/patch/patch.js";
import { packTar } from "../src/patch/tar.js";

const LIMITS = { maxFileBytes: 100, maxTotalBytes: 150 };
const entry = (path: string, text: string, mode = 0o644): TreeEntry => ({
  path,
  kind: "file",
  mode,
  sha256: sha256(text),
});
const tree = (...entries: TreeEntry[]) => ({
  digest: "base",
  entries: new Map(entries.map((each) => [each.path, each])),
});
const leaf = (text: string, isExecutable = false) => ({
  kind: "file" as const,
  isExecutable,
  size: Buffer.byteLength(text),
  read: () => Buffer.from(text),
});

describe("building a patch", () => {
  test("what is as it was before is no change, even after it was removed", () => {
    const builder = new PatchBuilder(tree(entry("a", "1"), entry("d/b", "2")), LIMITS);
    builder.absent("d");
    builder.present("d/b", leaf("2"));
    builder.present("a", leaf("1"));
    expect(builder.build().entries).toEqual([]);
  });

  test("removing a directory removes its leaves and no neighbour with the same beginning", () => {
    const builder = new PatchBuilder(tree(entry("d/a", "1"), entry("d/e/b", "2"), entry("d2", "3")), LIMITS);
    builder.absent("d");
    expect(builder.build().entries).toEqual([
      { kind: "deleted", path: "d/a" },
      { kind: "deleted", path: "d/e/b" },
    ]);
  });

  test("limits count files and their sum; a skipped leaf counts as unchanged", () => {
    const builder = new PatchBuilder(tree(entry("old", "1")), LIMITS);
    builder.absent("old");
    builder.present("old", leaf("x".repeat(101)));
    builder.present("p", leaf("y".repeat(90)));
    builder.present("q", leaf("z".repeat(61)));
    const patch = builder.build();
    expect(patch.entries.map((each) => each.path)).toEqual(["p"]);
    expect(patch.skipped).toEqual([
      { path: "old", reason: "over-limit" },
      { path: "q", reason: "over-limit" },
    ]);
  });
});

describe("a patch ends, however much was left (P3)", () => {
  test("leaves beyond the limit are not looked at", () => {
    const builder = new PatchBuilder(tree(), LIMITS);
    let n = 0;
    // Each of them asks what lies below it, as a layer that replaces directories by files does.
    for (; !builder.isFull; n++) {
      builder.absent(`d/${n}`);
      builder.present(`d/${n}`, leaf(""));
    }
    expect(n).toBe(100_000);
    builder.present("one more", leaf(""));
    const patch = builder.build();
    expect(patch.entries).toHaveLength(100_000);
    expect(patch.skipped).toEqual([{ path: "one more", reason: "over-limit" }]);
  });

  test("directories beyond the limit, and paths too long for the host, are not entered", () => {
    const builder = new PatchBuilder(tree(entry("a", "1")), LIMITS);
    const long = `${"n".repeat(200)}/`.repeat(11);
    expect(builder.enters(long)).toBe(false);
    builder.present(`${long}x`, leaf("x"));
    for (let n = 2; n <= 100_001; n++) expect(builder.enters("d")).toBe(true);
    expect(builder.isFull).toBe(false);
    expect(builder.enters("one more")).toBe(false);
    expect(builder.isFull).toBe(true);
    expect(builder.build().skipped.map(({ reason }) => reason)).toEqual(Array(3).fill("over-limit"));
  });
});

describe("containment", () => {
  test("paths", () => {
    for (const good of ["a", "a/b", "..a", "a/...", " "]) expect(isContainedPath(good)).toBe(true);
    for (const bad of ["", "/a", "a/", "a//b", ".", "a/../b", "..", "a\0b"])
      expect(isContainedPath(bad)).toBe(false);
  });

  test("links", () => {
    expect(isContainedLink("a/b", "../c")).toBe(true);
    expect(isContainedLink("a/b", "../../c")).toBe(false);
    expect(isContainedLink("a", "b/../../c")).toBe(false);
    expect(isContainedLink("a", "/etc/passwd")).toBe(false);
    expect(isContainedLink("a", "")).toBe(false);
  });

  test("an entry below a link or a file of the same patch is refused", () => {
    expect(() =>
      assertContained([
        { kind: "symlink", path: "d", target: "." },
        { kind: "file", path: "d/x", mode: 0o644, content: Buffer.from("") },
      ]),
    ).toThrow(/lies below/);
  });
});

describe("bytes of a patch", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "é", "-", "."), minLength: 1, maxLength: 60 });
  const name = text.filter((each) => isContainedPath(each) && each !== ".git");
  const entries = fc.uniqueArray(
    fc.oneof(
      fc.record({
        kind: fc.constant("file" as const),
        path: name,
        mode: fc.constantFrom(0o644 as const, 0o755 as const),
        content: fc.uint8Array({ maxLength: 2000 }),
      }),
      fc.record({ kind: fc.constant("symlink" as const), path: name, target: name }),
      fc.record({ kind: fc.constant("deleted" as const), path: name }),
    ),
    { selector: (each) => each.path, maxLength: 8 },
  );

  test("decode what was encoded, and equal patches are equal bytes", async () => {
    await fc.assert(
      fc.asyncProperty(entries, async (made) => {
        const patch: Patch = { base: "b", entries: made, skipped: [{ path: "s", reason: "special-file" }] };
        const bytes = await encodePatch(patch);
        const decoded = await decodePatch(bytes);
        expect(Buffer.from(await encodePatch(decoded)).equals(bytes)).toBe(true);
        expect(decoded.entries.map((each) => ({ ...each, content: undefined }))).toEqual(
          made.map((each) => ({ ...each, content: undefined })),
        );
      }),
      { numRuns: 60 },
    );
  });

  const hostile = (entry: object, member = "files/a") =>
    packTar([
      {
        name: "patch.json",
        kind: "file",
        mode: 0o644,
        content: Buffer.from(
          JSON.stringify({ format: "mortise-patch/1", base: "b", entries: [entry], skipped: [] }),
        ),
      },
      { name: member, kind: "file", mode: 0o644, content: Buffer.from("x") },
    ]);

  test.each([
    ["climbs out", { kind: "file", path: "../a", mode: 420, sha256: sha256("x") }, "files/../a"],
    ["is absolute", { kind: "deleted", path: "/etc/passwd" }],
    ["is setuid", { kind: "file", path: "a", mode: 0o4755, sha256: sha256("x") }],
    ["links out", { kind: "symlink", path: "a", target: "../../etc" }],
    [
      "touches git",
      { kind: "file", path: ".git/hooks/x", mode: 493, sha256: sha256("x") },
      "files/.git/hooks/x",
    ],
    ["has other content", { kind: "file", path: "a", mode: 420, sha256: sha256("y") }],
    ["has no content", { kind: "file", path: "b", mode: 420, sha256: sha256("x") }],
    ["has an unknown kind", { kind: "device", path: "a" }],
  ])("a patch that %s is refused", async (_, bad, member) => {
    await expect(decodePatch(await hostile(bad, member))).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_PATCH",
    });
  });

  test("bytes that are no patch are refused", async () => {
    for (const bytes of [Buffer.from("nonsense"), Buffer.alloc(0), await packTar([])])
      await expect(decodePatch(bytes)).rejects.toMatchObject({ code: "MORTISE_SANDBOX_PATCH" });
  });
});
