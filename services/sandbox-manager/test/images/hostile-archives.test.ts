/**
 * Archives that use what the formats allow against whoever reads them: headers that contradict each other, names at and
 * beyond the limits, entries given more than once, marks where none belongs. Needs root.
 */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import path from "node:path";
import { constants, createZstdCompress, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { ImageStore } from "../../dist/images/store/image-store.js";
import {
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
import { readXattrs } from "../../src/images/layer/linux.js";
import { gzipLayer, RegistryServer } from "./registry-server.js";
import { isRoot, Scratch } from "./scratch.js";

const scratch = new Scratch();
afterAll(() => scratch.remove());

const REFUSED = { code: "MORTISE_SANDBOX_IMAGE_LAYER" };
const OVER_LIMIT = { code: "MORTISE_SANDBOX_IMAGE_OVER_LIMIT" };
const read = (...parts: string[]) => readFileSync(path.join(...parts), "utf8");
const names = (root: string) => readdirSync(root, { recursive: true }).map(String).sort();
const pax = (name: string, records: Member["pax"], content = "x") => file(name, content, { pax: records! });

describe.skipIf(!isRoot)("headers that contradict each other (needs root)", () => {
  test.each<[string, Member[] | Buffer]>([
    ["a harmless name whose extended header climbs", [pax("ok", [["path", "../../victim"]])]],
    [
      "a name of a sparse file that climbs",
      [
        pax("ok", [
          ["GNU.sparse.name", "../victim"],
          ["GNU.sparse.size", "1"],
          ["GNU.sparse.map", "0,1"],
        ]),
      ],
    ],
    [
      "a long name that climbs",
      Buffer.concat([extension("L", Buffer.from("../victim\0")), tar([file("ok", "x")])]),
    ],
    ["a name that is climbing only", [file("..", "x")]],
    [
      "a length of a record that is nought",
      Buffer.concat([extension("x", Buffer.from("0 path=x\n")), tar([file("a")])]),
    ],
    [
      "a length of a record that is negative",
      Buffer.concat([extension("x", Buffer.from("-9 path=x\n")), tar([file("a")])]),
    ],
    [
      "a length of a record beyond every number",
      Buffer.concat([extension("x", Buffer.from("99999999999 path=x\n")), tar([file("a")])]),
    ],
    ["a record without a key", Buffer.concat([extension("x", Buffer.from("8 nokey\n")), tar([file("a")])])],
    ["a size that is no number", [pax("a", [["size", "1e3"]])]],
    ["a size beyond what is there", [pax("a", [["size", "4096"]])]],
    ["a size larger than any file", [pax("a", [["size", "99999999999999999"]])]],
    ["an owner beyond 32 bits", [pax("a", [["uid", "4294967296"]])]],
    ["a time that is no time", [pax("a", [["mtime", "tomorrow"]])]],
    ["a link to a NUL", [symlink("l", "x", { pax: [["linkpath", "a\0b"]] })]],
    ["a link to nothing", [symlink("l", "x", { pax: [["linkpath", ""]], target: "" })]],
    ["a hard link whose extended header climbs", [hardlinkTo([["linkpath", "../victim"]])]],
    [
      "a sparse file with fewer bytes than its map says",
      [
        pax("a", [
          ["GNU.sparse.size", "100"],
          ["GNU.sparse.map", "0,50"],
        ]),
      ],
    ],
    [
      "sparse ranges beyond every number",
      [
        pax("a", [
          ["GNU.sparse.size", "9007199254740991"],
          ["GNU.sparse.map", "9007199254740990,1"],
        ]),
      ],
    ],
    [
      "a map of more ranges than a file has bytes",
      [
        pax(
          "a",
          [
            ["GNU.sparse.major", "1"],
            ["GNU.sparse.size", "9"],
          ],
          "99999999\n",
        ),
      ],
    ],
    [
      "global headers without end",
      Buffer.concat([
        ...Array.from({ length: 2100 }, () => extension("g", Buffer.from("7 k=v1\n"))),
        tar([file("a")]),
      ]),
    ],
  ])("refused: %s", async (_, archive) => {
    await expect(scratch.unpack(archive)).rejects.toSatisfy(
      (error: { code?: string }) => error.code === REFUSED.code || error.code === OVER_LIMIT.code,
    );
  });

  test("what a size hides is not read as a member of its own", async () => {
    const smuggled = tar([file("smuggled", "x")]);
    const layer = await scratch.unpack([
      pax("outer", [["size", String(smuggled.byteLength)]], smuggled.toString("latin1")),
      file("after", "y"),
    ]);
    expect(names(layer.directory)).toEqual(["after", "outer"]);
    const short = [file("outer", smuggled.toString("latin1"), { size: 0 })];
    // Here the header itself says so: then it is a member to every reader.
    expect(names((await scratch.unpack(short)).directory)).toEqual(["outer", "smuggled"]);
  });

  test("the last of several names counts, and is judged", async () => {
    const records = [
      ["path", "../first"],
      ["path", "second"],
    ] as const;
    expect(names((await scratch.unpack([pax("x", records)])).directory)).toEqual(["second"]);
    await expect(scratch.unpack([pax("x", [records[1], records[0]])])).rejects.toMatchObject(REFUSED);
  });

  test("a layer does not speak to the overlay or to the host's security modules", async () => {
    const attributes = [
      "trusted.overlay.redirect",
      "trusted.overlay.opaque",
      "trusted.overlay.metacopy",
      "trusted.overlay.whiteout",
      "user.overlay.opaque",
      "security.selinux",
      "security.ima",
      "security.evm",
    ];
    const records = attributes.map((key): [string, string] => [`SCHILY.xattr.${key}`, "y"]);
    const layer = await scratch.unpack([directory("d", { pax: records }), pax("f", records)]);
    expect(layer.skipped.map(({ reason }) => reason)).toContain("xattr");
    for (const name of ["d", "f"])
      expect(
        [...readXattrs(path.join(layer.directory, name)).keys()].filter((key) => !key.startsWith("user.")),
      ).toEqual([]);
    const base = await scratch.unpack([directory("d"), file("d/below", "seen")]);
    expect(read(scratch.overlay([layer.directory, base.directory]), "d/below")).toBe("seen");
  });

  test("attributes larger than the file system takes are this host's or the layer's, never a crash", async () => {
    const huge = [["SCHILY.xattr.user.big", Buffer.alloc(200_000, "x")]] as const;
    await expect(scratch.unpack([pax("f", huge)])).rejects.toMatchObject({
      code: expect.stringMatching(/^MORTISE_SANDBOX_(IMAGE_LAYER|IMAGE_STORE|NO_SPACE)$/),
    });
  });
});

function hardlinkTo(records: NonNullable<Member["pax"]>): Member {
  return { ...hardlink("h", "x"), pax: records };
}

describe.skipIf(!isRoot)("names at the limits (needs root)", () => {
  const deep = (n: number) => Array.from({ length: n }, (_, at) => `${at % 10}`).join("/");
  const long = (bytes: number) =>
    `${`${"d".repeat(200)}/`.repeat(Math.ceil(bytes / 201)).slice(0, bytes - 1)}x`;
  const named = (name: string) => pax("x", [["path", name]]);

  test.each([
    ["a part of 256 bytes", "p".repeat(256)],
    ["a path of 4096 bytes", long(4096)],
    ["513 directories", `${deep(513)}/f`],
    ["an empty name", "./"],
  ])("refused: %s", async (_, name) => {
    const members = name === "./" ? [file("./", "x", { type: "0" }), symlink(".", "x")] : [named(name)];
    await expect(scratch.unpack(members)).rejects.toMatchObject(REFUSED);
  });

  test("what is within them is unpacked, and removed whole when the layer is refused after all", async () => {
    const registry = await new RegistryServer().start();
    const members = [file("ok"), named(long(4095)), named(`${deep(511)}/f`), named("p".repeat(255))];
    const layer = await scratch.unpack(members);
    expect(layer.entries).toBe(4);
    const place = scratch.directory();
    const strict = new ImageStore({ directory: place });
    registry.putImage("deep", [gzipLayer([...members, symlink("l", "/"), hardlink("h", "nowhere")])], {
      tag: "1",
    });
    await expect(
      strict.pull({ kind: "registry", reference: `${registry.host}/deep:1` }),
    ).rejects.toMatchObject(REFUSED);
    expect(readdirSync(path.join(place, "layers"))).toEqual([]);
    await Promise.all([strict.close(), registry.stop()]);
  });

  test("names are bytes: what is no text is kept, and told apart", async () => {
    const layer = await scratch.unpack([
      named("a\nb"),
      file(Buffer.from([0x66, 0xff]), "1"),
      file(Buffer.from([0x66, 0xfe]), "2"),
    ]);
    const found = readdirSync(layer.directory, { encoding: "buffer" }).map((name) => name.toString("latin1"));
    expect(found.sort()).toEqual(["a\nb", "f\xfe", "f\xff"]);
  });
});

describe.skipIf(!isRoot)("entries given more than once (needs root)", () => {
  test("the last one counts, whatever kind each is, and nothing of the others stays", async () => {
    const kinds: Member[] = [
      file("e", "file"),
      directory("e"),
      symlink("e", "target"),
      { name: "e", type: "6" },
      hardlink("e", "other"),
    ];
    for (const first of kinds)
      for (const last of kinds) {
        const layer = await scratch.unpack([
          file("other", "linked"),
          first,
          ...(first.type === "5" ? [file("e/inside", "x")] : []),
          last,
        ]);
        const stat = lstatSync(path.join(layer.directory, "e"));
        const isDirectory = last.type === "5";
        expect([first.type, last.type, stat.isDirectory()]).toEqual([first.type, last.type, isDirectory]);
        if (stat.isSymbolicLink()) expect(readlinkSync(path.join(layer.directory, "e"))).toBe("target");
        if (!isDirectory) expect(names(layer.directory)).toEqual(["e", "other"]);
      }
  });

  test("a file written twice does not write through its hard links", async () => {
    const layer = await scratch.unpack([file("a", "first"), hardlink("b", "a"), file("a", "second")]);
    expect([read(layer.directory, "a"), read(layer.directory, "b")]).toEqual(["second", "first"]);
  });

  test("a link to itself and links in a circle are refused, or nothing", async () => {
    await expect(scratch.unpack([hardlink("a", "a")])).rejects.toMatchObject(REFUSED);
    await expect(scratch.unpack([hardlink("a", "b"), hardlink("b", "a")])).rejects.toMatchObject(REFUSED);
    const same = await scratch.unpack([file("a", "x"), hardlink("a", "a")]);
    expect(read(same.directory, "a")).toBe("x");
  });
});

describe.skipIf(!isRoot)("marks where none belongs (needs root)", () => {
  test.each([
    ["of nothing", ".wh."],
    ["of the directory itself", ".wh.."],
    ["of the one above", ".wh..."],
    ["of the one above, deeper", "d/.wh..."],
  ])("refused: a mark %s", async (_, name) => {
    await expect(scratch.unpack([directory("d"), file(name)])).rejects.toMatchObject(REFUSED);
  });

  test("an opaque mark of the root hides everything below, directories that this layer has too among it", async () => {
    const base = await scratch.unpack([
      file("secret", "s"),
      directory("d"),
      file("d/secret", "s"),
      directory("e"),
      file("e/secret"),
      symlink("l", "d"),
    ]);
    const middle = await scratch.unpack([file("more", "m"), directory("f"), file("f/secret")]);
    const below = [middle.directory, base.directory];
    for (const members of [
      [
        directory("d"),
        file("d/own", "o"),
        file(".wh..wh..opq"),
        file("later", "x"),
        directory("e"),
        file("e/own"),
        file("f/own"),
      ],
      [
        file(".wh..wh..opq"),
        directory("d"),
        file("d/own", "o"),
        file("later", "x"),
        directory("e"),
        file("e/own"),
        file("f/own"),
      ],
    ]) {
      const top = await scratch.unpack(members, { below });
      expect(top.needsLower).toBe(true);
      const seen = scratch.overlay([top.directory, ...below]);
      expect(names(seen)).toEqual(["d", "d/own", "e", "e/own", "f", "f/own", "later"]);
    }
  });

  test("a mark and an entry of one name: the entry stays, what is below is hidden", async () => {
    const base = await scratch.unpack([directory("d"), file("d/old"), file("f", "old")]);
    for (const members of [
      [file(".wh.f"), file("f", "new"), file(".wh.d"), directory("d")],
      [file("f", "new"), file(".wh.f"), directory("d"), file(".wh.d")],
    ]) {
      const seen = scratch.overlay([(await scratch.unpack(members)).directory, base.directory]);
      expect([names(seen), read(seen, "f")]).toEqual([["d", "f"], "new"]);
    }
  });

  test("a deletion as a device, as the overlay keeps it, is no deletion", async () => {
    const base = await scratch.unpack([file("f", "below")]);
    const top = await scratch.unpack([{ name: "f", type: "3", major: 0, minor: 0 }], { devices: "create" });
    expect(read(scratch.overlay([top.directory, base.directory]), "f")).toBe("below");
  });
});

describe.skipIf(!isRoot)("compressed streams that are not what they begin as (needs root)", () => {
  const frame = () => zstdCompressSync(tar([file("x")]));
  test.each<[string, () => Buffer]>([
    ["something else behind the first frame", () => Buffer.concat([frame(), Buffer.from("not a frame")])],
    [
      "a frame with a block of no kind",
      () => Buffer.concat([frame(), Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 7, 0, 0])]),
    ],
    [
      "a frame that is skipped and never ends",
      () => Buffer.from([0x50, 0x2a, 0x4d, 0x18, 255, 255, 255, 255, 0]),
    ],
    ["a frame cut off", () => frame().subarray(0, 20)],
    [
      "gzip with something else behind it",
      () => Buffer.concat([gzipSync(tar([file("x")]).subarray(0, 300)), Buffer.from("x")]),
    ],
  ])("refused: %s", async (_, bytes) => {
    await expect(scratch.unpack(tar([file("x")]), { bytes: bytes() })).rejects.toMatchObject({
      code: expect.stringMatching(/^MORTISE_SANDBOX_IMAGE_(LAYER|DIGEST)$/),
    });
  });
});

describe.skipIf(!isRoot)("bombs (needs root)", () => {
  const zeros = Buffer.alloc(96 * 1024 * 1024);
  const archive = Buffer.concat([
    member(file("x", "", { size: zeros.byteLength })),
    zeros,
    Buffer.alloc(1024),
  ]);

  test.each([
    ["of one frame", () => zstdCompressSync(archive)],
    [
      "of many frames",
      () =>
        Buffer.concat(
          Array.from({ length: 96 }, (_, n) =>
            zstdCompressSync(archive.subarray(n * 1_050_000, (n + 1) * 1_050_000)),
          ),
        ),
    ],
    [
      "of gzip members",
      () =>
        Buffer.concat(
          Array.from({ length: 96 }, (_, n) =>
            gzipSync(archive.subarray(n * 1_050_000, (n + 1) * 1_050_000), { level: 9 }),
          ),
        ),
    ],
  ])("zeros %s end at the ratio", async (_, bytes) => {
    await expect(scratch.unpack(archive, { bytes: bytes() })).rejects.toMatchObject(OVER_LIMIT);
  });

  test("a window of gigabytes is refused before memory is taken for it", async () => {
    // RFC 8878 §3.1.1: no content size, a window descriptor of exponent 21: 2 GiB.
    const bytes = Buffer.concat([
      Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3]),
      Buffer.from([0x01, 0x00, 0x00]),
    ]);
    const before = process.memoryUsage().rss;
    await expect(scratch.unpack(tar([]), { bytes })).rejects.toMatchObject(REFUSED);
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
    const large = await compressedWithWindow(tar([file("x", "y")]), 27);
    expect((await scratch.unpack(tar([file("x", "y")]), { bytes: large })).entries).toBe(1);
  });

  test("skipped frames without end count for what was sent", async () => {
    const frame = Buffer.concat([Buffer.from([0x50, 0x2a, 0x4d, 0x18, 0, 0, 1, 0]), Buffer.alloc(65_536)]);
    const bytes = Buffer.concat([
      zstdCompressSync(tar([file("x")])),
      ...Array.from({ length: 32 }, () => frame),
    ]);
    const size = bytes.byteLength - 1;
    await expect(
      scratch.unpack(tar([file("x")]), { bytes, blob: { digest: "sha256:0", size } }),
    ).rejects.toMatchObject({ code: "MORTISE_SANDBOX_IMAGE_DIGEST" });
  });

  test("files of nothing but holes take no space, and end at the size of one file", async () => {
    const holes = (n: number, size: number) =>
      pax(
        `h${n}`,
        [
          ["GNU.sparse.size", String(size)],
          ["GNU.sparse.map", "0,0"],
        ],
        "",
      );
    const layer = await scratch.unpack(Array.from({ length: 50 }, (_, n) => holes(n, 200 * 1024 ** 3)));
    const blocks = readdirSync(layer.directory).map(
      (name) => lstatSync(path.join(layer.directory, name)).blocks,
    );
    expect(Math.max(...blocks)).toBe(0);
    await expect(scratch.unpack([holes(0, DEFAULT_LAYER_LIMITS.fileBytes + 1)])).rejects.toMatchObject(
      OVER_LIMIT,
    );
  });
});

async function compressedWithWindow(plain: Buffer, windowLog: number): Promise<Buffer> {
  const encoder = createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: windowLog } });
  encoder.end(plain);
  return Buffer.concat(await encoder.toArray());
}
