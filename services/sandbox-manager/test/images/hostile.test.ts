/** Layers made to do harm touch nothing outside their root, and leave an error that says what they tried. Needs root. */
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import {
  digestOf,
  directory,
  extension,
  file,
  hardlink,
  type Member,
  member,
  symlink,
  tar,
} from "../../src/conformance/tar-builder.js";
import { DEFAULT_LAYER_LIMITS } from "../../src/images/layer/limits.js";
import { isRoot, Scratch } from "./scratch.js";

const scratch = new Scratch();
afterAll(() => scratch.remove());

/** `victim/secret` lies beside the root a layer is unpacked into. */
let outside: string;
let root: string;
beforeEach(() => {
  outside = scratch.directory();
  root = path.join(outside, "root");
  mkdirSync(root);
  mkdirSync(path.join(outside, "victim"));
  writeFileSync(path.join(outside, "victim/secret"), "untouched");
});

function expectUntouched(): void {
  expect(readdirSync(outside).sort()).toEqual(["root", "victim"]);
  expect(readdirSync(path.join(outside, "victim"))).toEqual(["secret"]);
  expect(readFileSync(path.join(outside, "victim/secret"), "utf8")).toBe("untouched");
  expect(lstatSync(path.join(outside, "victim/secret")).nlink).toBe(1);
}

const victim = () => path.join(outside, "victim");
const attempts: [string, () => Member[]][] = [
  ["names that climb", () => [file("../victim/secret", "x")]],
  ["names that climb in the middle", () => [directory("a"), file("a/../../victim/secret", "x")]],
  ["an absolute name", () => [file(`${victim()}/secret`, "x")]],
  ["a file through an absolute link", () => [symlink("l", victim()), file("l/secret", "x")]],
  ["a file through a climbing link", () => [symlink("l", "../victim"), file("l/secret", "x")]],
  [
    "a chain of links, each harmless by itself",
    () => [
      directory("a"),
      symlink("a/up", ".."),
      symlink("b", "a/up/../.."),
      symlink("c", "b/victim"),
      file("c/secret", "x"),
    ],
  ],
  ["a file over a link to a file", () => [symlink("s", `${victim()}/secret`), file("s", "x")]],
  ["a directory entry over a link", () => [symlink("d", victim()), directory("d", { mode: 0o777, uid: 1 })]],
  ["a hard link to a file outside", () => [hardlink("h", "../victim/secret"), file("h", "x")]],
  ["a hard link by an absolute name", () => [hardlink("h", `${victim()}/secret`), file("h", "x")]],
  ["a hard link through a link", () => [symlink("l", victim()), hardlink("h", "l/secret"), file("h", "x")]],
  [
    "a hard link to a link, then written",
    () => [symlink("l", `${victim()}/secret`), hardlink("h", "l"), file("h", "x")],
  ],
  ["a mark that deletes above", () => [file(".wh..")]],
  ["a mark through a link", () => [symlink("l", victim()), file("l/.wh.secret")]],
  ["an opaque mark through a link", () => [symlink("l", victim()), file("l/.wh..wh..opq")]],
  [
    "a link replaced while its directory is in use",
    () => [directory("d"), file("d/a"), symlink("d", victim()), file("d/secret", "x")],
  ],
  ["links of the kernel", () => [symlink("p", "/proc/self/root"), file(`p${victim()}/secret`, "x")]],
  ["a name over the root", () => [symlink(".", victim()), file("secret", "x")]],
];

describe.skipIf(!isRoot)("outside the root (needs root)", () => {
  test.each(attempts)("nothing is reached by %s", async (_, members) => {
    await scratch.unpack(members(), { directory: root }).catch((error: unknown) => {
      expect(error).toMatchObject({ code: "MORTISE_SANDBOX_IMAGE_LAYER" });
    });
    expectUntouched();
  });
});

describe.skipIf(!isRoot)("refused with a reason (needs root)", () => {
  const overLimit = "MORTISE_SANDBOX_IMAGE_OVER_LIMIT";
  const refused = "MORTISE_SANDBOX_IMAGE_LAYER";

  test.each<[string, Buffer]>([
    ["a NUL in a name", tar([file("x", "", { pax: [["path", "a\0b"]] })])],
    ["an unknown kind", tar([{ name: "x", type: "Z" }])],
    ["a wrong checksum", Buffer.concat([Buffer.alloc(512, 65), Buffer.alloc(1024)])],
    ["a negative size", tar([file("x", "", { patch: (block) => block.fill(0xff, 124, 136) })])],
    ["an owner that means 'unchanged'", tar([file("x", "", { pax: [["uid", "4294967295"]] })])],
    [
      "an extended header without an end",
      Buffer.concat([extension("x", Buffer.from("999 path=x\n")), tar([file("x")])]),
    ],
    ["a long name of megabytes", Buffer.concat([member({ name: "l", type: "L", size: 2 ** 30 }), tar([])])],
    [
      "a sparse map beyond its file",
      tar([
        file("x", "ab", {
          pax: [
            ["GNU.sparse.size", "1"],
            ["GNU.sparse.map", "0,2"],
          ],
        }),
      ]),
    ],
    [
      "sparse ranges that overlap",
      tar([
        file("x", "abcd", {
          pax: [
            ["GNU.sparse.size", "9"],
            ["GNU.sparse.map", "2,2,0,2"],
          ],
        }),
      ]),
    ],
    ["an archive cut in a file", tar([file("x", "y".repeat(2000))]).subarray(0, 1000)],
    ["an archive cut in a header", tar([file("x")]).subarray(0, 100)],
    ["a link to a directory", tar([directory("d"), hardlink("h", "d")])],
    ["a name below a file", tar([file("f"), file("f/x")])],
    ["a name below a link that leads nowhere", tar([symlink("l", "nowhere"), file("l/x")])],
    ["links in a circle", tar([symlink("a", "b"), symlink("b", "a"), file("a/x")])],
  ])("%s", async (_, archive) => {
    await expect(scratch.unpack(archive)).rejects.toMatchObject({ code: refused });
  });

  test("devices are left out, refused or made, as the policy says; a forged deletion mark never", async () => {
    const members: Member[] = [
      { name: "null", type: "3", major: 1, minor: 3 },
      { name: "forged", type: "3", major: 0, minor: 0 },
      { name: "disk", type: "4", major: 259, minor: 300 },
    ];
    const skipped = await scratch.unpack(members);
    expect(readdirSync(skipped.directory)).toEqual([]);
    expect(skipped.skipped.map(({ reason }) => reason)).toEqual(["device", "device", "device"]);
    await expect(scratch.unpack(members, { devices: "refuse" })).rejects.toMatchObject({ code: refused });
    const created = await scratch.unpack(members, { devices: "create" });
    expect(readdirSync(created.directory).sort()).toEqual(["disk", "null"]);
    // 259:300 as the kernel's 64-bit device number.
    expect(lstatSync(path.join(created.directory, "disk")).rdev).toBe((259 << 8) | 44 | (256 << 12));
  });

  test("bombs end at the limit they hit", async () => {
    const limits = DEFAULT_LAYER_LIMITS;
    const members = Array.from({ length: 20 }, (_, n) => file(`f${n}`));
    await expect(scratch.unpack(members, { limits: { ...limits, entries: 19 } })).rejects.toMatchObject({
      code: overLimit,
    });
    const large = tar([file("x", Buffer.alloc(100_000) as never)]);
    const bytes = gzipSync(large);
    await expect(
      scratch.unpack(large, { bytes, limits: { ...limits, bytes: 50_000 } }),
    ).rejects.toMatchObject({ code: overLimit });
    const holes = tar([
      file("x", "", {
        pax: [
          ["GNU.sparse.size", String(2 ** 50)],
          ["GNU.sparse.map", "0,0"],
        ],
      }),
    ]);
    await expect(scratch.unpack(holes)).rejects.toMatchObject({ code: overLimit });
  });

  test("a small blob that grows beyond any honest ratio is cut off", async () => {
    const zeros = Buffer.alloc(80 * 1024 * 1024);
    const archive = Buffer.concat([
      member(file("x", "", { size: zeros.byteLength })),
      zeros,
      Buffer.alloc(1024),
    ]);
    const bytes = zstdCompressSync(archive);
    await expect(scratch.unpack(archive, { bytes })).rejects.toMatchObject({ code: overLimit });
  });

  test("wrong bytes are told from a wrong layer", async () => {
    const plain = tar([file("x", "y")]);
    const wrong = "MORTISE_SANDBOX_IMAGE_DIGEST";
    const gzip = gzipSync(plain);
    const blob = { digest: digestOf(gzip), size: gzip.byteLength };
    const damaged = Buffer.from(gzip);
    damaged.fill(0, 12, 30);
    await expect(scratch.unpack(plain, { bytes: damaged, blob })).rejects.toMatchObject({ code: wrong });
    await expect(scratch.unpack(plain, { bytes: gzip.subarray(0, 40), blob })).rejects.toMatchObject({
      code: wrong,
    });
    await expect(scratch.unpack(plain, { bytes: Buffer.concat([gzip, gzip]), blob })).rejects.toMatchObject({
      code: wrong,
    });
    await expect(scratch.unpack(plain, { diffId: digestOf(gzip) })).rejects.toMatchObject({ code: wrong });
  });
});
