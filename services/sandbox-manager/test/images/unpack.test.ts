/** Layers become directories an overlay can stack, with everything the archive said of each entry. Needs root. */
import { randomBytes } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import path from "node:path";
import { constants, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import {
  digestOf,
  directory,
  extension,
  file,
  hardlink,
  member,
  padded,
  symlink,
  tar,
} from "../../src/conformance/tar-builder.js";
import { DEFAULT_LAYER_LIMITS } from "../../src/images/layer/limits.js";
import { readXattrs } from "../../src/images/layer/linux.js";
import { unpackLayer } from "../../src/images/layer/unpack.js";
import { chunked, isRoot, Scratch } from "./scratch.js";

const scratch = new Scratch();
afterAll(() => scratch.remove());
const read = (...parts: string[]) => readFileSync(path.join(...parts), "utf8");

describe.skipIf(!isRoot)("one layer (needs root)", () => {
  test("owners, modes with setuid, times and links are kept", async () => {
    const { directory: root, entries } = await scratch.unpack([
      directory("usr", { mode: 0o1777, mtime: 1_111_111_111 }),
      file("usr/tool", "#!", { mode: 0o4755, uid: 7, gid: 70_000, mtime: 1_234_567_890 }),
      symlink("usr/absolute", "/etc/alternatives/x", { uid: 3 }),
      hardlink("usr/again", "usr/tool"),
      { name: "pipe", type: "6", mode: 0o620 },
      file("./a b/ü\n", "odd", { pax: [["mtime", "1350244992.023960108"]] }),
    ]);
    expect(entries).toBe(6);
    const tool = lstatSync(path.join(root, "usr/tool"));
    expect([tool.mode & 0o7777, tool.uid, tool.gid, tool.nlink]).toEqual([0o4755, 7, 70_000, 2]);
    expect(tool.mtimeMs).toBe(1_234_567_890_000);
    expect(lstatSync(path.join(root, "usr")).mode & 0o7777).toBe(0o1777);
    expect(lstatSync(path.join(root, "usr")).mtimeMs).toBe(1_111_111_111_000);
    expect(readlinkSync(path.join(root, "usr/absolute"))).toBe("/etc/alternatives/x");
    expect(lstatSync(path.join(root, "usr/absolute")).uid).toBe(3);
    expect(lstatSync(path.join(root, "pipe")).isFIFO()).toBe(true);
    expect(lstatSync(path.join(root, "a b/ü\n"), { bigint: true }).mtimeNs).toBe(1350244992023960108n);
  });

  test("long names in both spellings, large numbers and names that are no UTF-8", async () => {
    const long = `${"d".repeat(120)}/${"e".repeat(120)}/f`;
    const target = `/${"t".repeat(200)}`;
    const odd = Buffer.from([0x66, 0xff, 0xfe]);
    const { directory: root } = await scratch.unpack(
      Buffer.concat([
        extension("L", Buffer.from(`${long}\0`)),
        extension("K", Buffer.from(`${target}\0`)),
        member(symlink("short", "short")),
        member(
          file("short", "pax", {
            pax: [
              ["path", `${long}2`],
              ["uid", "3000000000"],
            ],
          }),
        ),
        member({ name: odd, content: "x" }),
        member(file("big", "", { patch: (block) => block.set([0x80, 0, 0, 0, 0x80, 0, 0, 0], 108) })),
        Buffer.alloc(1024),
      ]),
    );
    expect(readlinkSync(path.join(root, long))).toBe(target);
    expect(read(root, `${long}2`)).toBe("pax");
    expect(lstatSync(path.join(root, `${long}2`)).uid).toBe(3_000_000_000);
    expect(lstatSync(path.join(root, "big")).uid).toBe(2 ** 31);
    expect(readdirSync(root, { encoding: "buffer" }).some((name) => name.equals(odd))).toBe(true);
  });

  test("extended attributes keep their bytes; those that speak to the overlay are left out", async () => {
    const capability = Buffer.from("0100000200200000000000000000000000000000", "hex");
    const { directory: root, skipped } = await scratch.unpack([
      file("ping", "", {
        pax: [
          ["SCHILY.xattr.security.capability", capability],
          ["SCHILY.xattr.user.note", Buffer.from([0, 255, 10, 61])],
          ["SCHILY.xattr.trusted.overlay.redirect", "/etc"],
        ],
      }),
    ]);
    const xattrs = readXattrs(path.join(root, "ping"));
    expect(xattrs.get("security.capability")).toEqual(capability);
    expect(xattrs.get("user.note")).toEqual(Buffer.from([0, 255, 10, 61]));
    expect(xattrs.has("trusted.overlay.redirect")).toBe(false);
    expect(skipped).toEqual([{ name: "ping: trusted.overlay.redirect", reason: "xattr" }]);
  });

  const MiB = 1024 * 1024;
  const parts = Buffer.concat([Buffer.alloc(512, "a"), Buffer.alloc(512, "b")]);
  const ranges = [0, 512, 4 * MiB, 512];
  const oldGnu = (block: Buffer) => {
    block.write("ustar  \0", 257, "latin1");
    for (const [at, value] of ranges.entries())
      block.write(value.toString(8).padStart(11, "0"), 386 + at * 12);
    block.write((8 * MiB).toString(8).padStart(11, "0"), 483);
    block.fill(0, 345, 386);
  };
  const named = [["GNU.sparse.name", "sparse"] as const, ["GNU.sparse.realsize", String(8 * MiB)] as const];
  test.each([
    ["GNU's old header", member({ name: "sparse", type: "S", content: parts, patch: oldGnu })],
    [
      "PAX 0.0",
      member(
        file("sparse", parts as never, {
          pax: [
            ["GNU.sparse.size", String(8 * MiB)],
            ...[0, 2].flatMap((at) => [
              ["GNU.sparse.offset", String(ranges[at])] as const,
              ["GNU.sparse.numbytes", String(ranges[at + 1])] as const,
            ]),
          ],
        }),
      ),
    ],
    [
      "PAX 0.1",
      member(
        file("x", parts as never, {
          pax: [["GNU.sparse.size", String(8 * MiB)], ["GNU.sparse.map", ranges.join(",")], named[0]!],
        }),
      ),
    ],
    [
      "PAX 1.0",
      member(
        file("x", Buffer.concat([padded(Buffer.from(`2\n${ranges.join("\n")}\n`)), parts]) as never, {
          pax: [["GNU.sparse.major", "1"], ["GNU.sparse.minor", "0"], ...named],
        }),
      ),
    ],
  ])("a sparse file keeps its holes: %s", async (_, bytes) => {
    const { directory: root } = await scratch.unpack(
      Buffer.concat([bytes, member(file("after", "!")), Buffer.alloc(1024)]),
    );
    const sparse = path.join(root, "sparse");
    const stat = statSync(sparse);
    expect(stat.size).toBe(8 * MiB);
    expect(stat.blocks * 512).toBeLessThan(MiB);
    const content = readFileSync(sparse);
    expect(content.subarray(4 * MiB, 4 * MiB + 512).equals(Buffer.alloc(512, "b"))).toBe(true);
    expect(content.subarray(512, 4 * MiB).equals(Buffer.alloc(4 * MiB - 512))).toBe(true);
    expect(read(root, "after")).toBe("!");
  });

  test("gzip of several members, zstd and plain give the same tree", async () => {
    const plain = tar([file("a", "x".repeat(5000)), file("b", "y")]);
    const gzip = Buffer.concat([gzipSync(plain.subarray(0, 700)), gzipSync(plain.subarray(700))]);
    for (const bytes of [gzip, zstdCompressSync(plain), plain]) {
      const blob = { digest: digestOf(bytes), size: bytes.byteLength };
      const { directory: root } = await scratch.unpack(plain, { bytes, blob });
      expect(read(root, "a")).toBe("x".repeat(5000));
    }
  });

  test.each([1, 2, 3, 7, 777, 65_536])("zstd of many frames, %i bytes at a time", async (size) => {
    const plain = tar([
      file("a", "x".repeat(5000)),
      file("b", randomBytes(3000).toString("latin1")),
      file("c"),
    ]);
    // As zstd:chunked and parallel compressors write: a frame a part, tables in frames to skip.
    const skipped = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9]);
    const empty = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]);
    const checked = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };
    const frames = [0, 100, 700, 4096, 8192].map((start, at, all) =>
      zstdCompressSync(plain.subarray(start, all[at + 1]), at % 2 === 0 ? checked : {}),
    );
    const bytes = Buffer.concat([skipped, ...frames.flatMap((frame) => [frame, empty]), skipped]);
    const blob = { digest: digestOf(bytes), size: bytes.byteLength };
    const directory = scratch.directory();
    await unpackLayer(chunked(bytes, size), {
      directory,
      lower: async () => [],
      diffId: digestOf(plain),
      blob,
      devices: "skip",
      limits: DEFAULT_LAYER_LIMITS,
    });
    expect(readdirSync(directory).sort()).toEqual(["a", "b", "c"]);
    expect(read(directory, "a")).toBe("x".repeat(5000));
  });

  test("the last of several entries of one name counts, whatever the others were", async () => {
    const { directory: root } = await scratch.unpack([
      directory("d"),
      file("d/inner", "old"),
      file("d", "a file now"),
      symlink("l", "d"),
      directory("l"),
      file("l/inner", "new"),
      file("f", "1"),
      hardlink("g", "f"),
      file("g", "2"),
      hardlink("f", "f"),
    ]);
    expect(read(root, "d")).toBe("a file now");
    expect(lstatSync(path.join(root, "l")).isDirectory()).toBe(true);
    expect([read(root, "f"), read(root, "g"), read(root, "l/inner")]).toEqual(["1", "2", "new"]);
  });

  test("only the selected paths are kept, with the directories on the way", async () => {
    const { directory: root } = await scratch.unpack(
      [
        directory("opt", { mode: 0o711 }),
        file("opt/a"),
        directory("opt/b"),
        file("opt/b/c"),
        file("opt/bc"),
        file("x"),
      ],
      { paths: ["/opt/b"] },
    );
    expect(readdirSync(root, { recursive: true }).sort()).toEqual(["opt", "opt/b", "opt/b/c"]);
    expect(lstatSync(path.join(root, "opt")).mode & 0o777).toBe(0o711);
  });
});

describe.skipIf(!isRoot)("stacked layers (needs root)", () => {
  test("deleted names, opaque directories and replaced kinds look through an overlay as they should", async () => {
    const base = await scratch.unpack([
      directory("etc"),
      file("etc/gone", "1"),
      file("etc/.wh_kept", "2"),
      directory("var"),
      file("var/old", "3"),
      directory("anew"),
      file("anew/old", "4"),
      file("kind", "5"),
      directory("swap"),
      file("swap/old", "6"),
    ]);
    const top = await scratch.unpack(
      [
        directory("etc"),
        file("etc/.wh.gone"),
        directory("var"),
        file("var/.wh..wh..opq"),
        file("var/new", "7"),
        file(".wh.anew"),
        directory("anew"),
        file("anew/new", "8"),
        directory("kind"),
        file("kind/inner", "9"),
        file("swap", "10"),
        file(".wh..wh.plnk", "metadata"),
      ],
      { below: [base.directory] },
    );
    expect([base.needsLower, top.needsLower]).toEqual([false, false]);
    const seen = scratch.overlay([top.directory, base.directory]);
    expect(readdirSync(seen, { recursive: true }).sort()).toEqual([
      "anew",
      "anew/new",
      "etc",
      "etc/.wh_kept",
      "kind",
      "kind/inner",
      "swap",
      "var",
      "var/new",
    ]);
    expect(read(seen, "swap")).toBe("10");
  });

  test("a mark after the entry it hides concerns lower layers only", async () => {
    const base = await scratch.unpack([directory("d"), file("d/old"), file("f", "old")]);
    const top = await scratch.unpack([
      directory("d"),
      file("d/new"),
      file(".wh.d"),
      file("f", "new"),
      file(".wh.f"),
    ]);
    const seen = scratch.overlay([top.directory, base.directory]);
    expect(readdirSync(path.join(seen, "d"))).toEqual(["new"]);
    expect(read(seen, "f")).toBe("new");
  });

  test("a hard link to a file of a lower layer shares one inode with it, and the layer is marked", async () => {
    const base = await scratch.unpack([
      directory("bin", { mode: 0o700, uid: 9 }),
      file("bin/tool", "body", { mode: 0o4711, uid: 5, pax: [["SCHILY.xattr.user.k", "v"]] }),
    ]);
    const middle = await scratch.unpack([file("unrelated")]);
    const below = [middle.directory, base.directory];
    const top = await scratch.unpack([hardlink("bin/one", "bin/tool"), hardlink("two", "/bin/tool")], {
      below,
    });
    expect(top.needsLower).toBe(true);
    const seen = scratch.overlay([top.directory, ...below]);
    const [tool, one, two] = ["bin/tool", "bin/one", "two"].map((name) => lstatSync(path.join(seen, name)));
    expect([tool!.nlink, one!.ino, two!.ino]).toEqual([3, tool!.ino, tool!.ino]);
    expect([two!.mode & 0o7777, two!.uid, read(seen, "two")]).toEqual([0o4711, 5, "body"]);
    expect(readXattrs(path.join(seen, "two")).get("user.k")?.toString()).toBe("v");
    expect(lstatSync(path.join(seen, "bin")).mode & 0o777).toBe(0o700);
    expect(lstatSync(path.join(base.directory, "bin/tool")).nlink).toBe(1);
  });

  test("a directory the archive does not list looks as the lower one does", async () => {
    const base = await scratch.unpack([
      directory("srv", { mode: 0o2750, uid: 4, gid: 8, mtime: 1_000_000_123 }),
    ]);
    const top = await scratch.unpack([file("srv/deep/file")], { below: [base.directory] });
    const srv = lstatSync(path.join(scratch.overlay([top.directory, base.directory]), "srv"));
    expect([srv.mode & 0o7777, srv.uid, srv.gid, srv.mtimeMs]).toEqual([0o2750, 4, 8, 1_000_000_123_000]);
    expect(top.needsLower).toBe(true);
  });

  test("what a lower layer deleted cannot be linked to", async () => {
    const base = await scratch.unpack([file("f", "secret")]);
    const middle = await scratch.unpack([file(".wh.f")]);
    await expect(
      scratch.unpack([hardlink("g", "f")], { below: [middle.directory, base.directory] }),
    ).rejects.toMatchObject({ code: "MORTISE_SANDBOX_IMAGE_LAYER" });
  });
});
