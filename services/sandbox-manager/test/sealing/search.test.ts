/**
 * Copies of a fix anywhere in a root, packed in anything: each is found, in the place where it is, and nothing is
 * found where nothing is. Needs root and git.
 */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import path from "node:path";
import { deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { file, tar } from "../../src/conformance/tar-builder.js";
import { searchForAnswers } from "../../src/sealing/search/search-for-answers.js";
import type { Answers } from "../../src/sealing/types.js";
import {
  BASE_SOURCE,
  canSeal,
  FIXED_SOURCE,
  goldPatch,
  hasPython,
  PATIENT,
  SOURCE,
  TestRoot,
} from "./repositories.js";

let present: TestRoot;
beforeEach(() => {
  present = new TestRoot();
});
afterEach(() => present.remove());

const search = (changes: Parameters<TestRoot["request"]>[0] = {}) =>
  searchForAnswers(present.root, present.request(changes));
const compress = (program: string) => spawnSync(program, ["-c"], { input: FIXED_SOURCE }).stdout;
const has = (program: string) => spawnSync(program, ["--version"], { input: "" }).error === undefined;

const fixedTar = () => tar([file("names-2.0/README", "nothing"), file("names-2.0/names.py", FIXED_SOURCE)]);

const FIRST_FRAME = zstdCompressSync("nothing of it\n");
/** RFC 8878 §3.1.2 */
const SKIPPED = Buffer.from([0x5a, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2]);

/** Where a copy is, what the search says, and how it gets there. */
const COPIES: Record<string, readonly [hit: string, make: (root: TestRoot) => void]> = {
  "a newer copy in site-packages": [
    "file usr/lib/python3/site-packages/names.py",
    (root) => void root.write("usr/lib/python3/site-packages/names.py", FIXED_SOURCE),
  ],
  "another indentation": [
    "file opt/x.py",
    (root) => void root.write("opt/x.py", FIXED_SOURCE.replace(/^/gm, "\t\t")),
  ],
  "a patch": ["file opt/fix.patch", (root) => void root.write("opt/fix.patch", goldPatch())],
  "a record in JSON": [
    "file tests/config.json",
    (root) => void root.write("tests/config.json", JSON.stringify({ patch: goldPatch() })),
  ],
  "binary data": [
    "file opt/data.bin",
    (root) =>
      void root.write("opt/data.bin", Buffer.concat([Buffer.alloc(70_000, 255), Buffer.from(FIXED_SOURCE)])),
  ],
  gzip: ["compressed opt/names.gz!", (root) => void root.write("opt/names.gz", gzipSync(FIXED_SOURCE))],
  "zstd of several frames, behind one that is skipped": [
    "compressed opt/frames.zst!",
    (root) =>
      void root.write(
        "opt/frames.zst",
        Buffer.concat([SKIPPED, FIRST_FRAME, zstdCompressSync(FIXED_SOURCE)]),
      ),
  ],
  "zstd of several frames, large": [
    "compressed opt/large.zst!",
    (root) =>
      void root.write(
        "opt/large.zst",
        Buffer.concat([zstdCompressSync(randomBytes(2 ** 21)), SKIPPED, zstdCompressSync(FIXED_SOURCE)]),
      ),
  ],
  zstd: [
    "compressed opt/names.zst!",
    (root) => void root.write("opt/names.zst", zstdCompressSync(FIXED_SOURCE)),
  ],
  "a loose object that lies about": [
    "compressed opt/38aa!",
    (root) => void root.write("opt/38aa", deflateSync(`blob ${FIXED_SOURCE.length}\0${FIXED_SOURCE}`)),
  ],
  "an archive": ["file opt/names.tar", (root) => void root.write("opt/names.tar", fixedTar())],
  "a compressed archive": [
    "compressed opt/names.tar.gz!",
    (root) => void root.write("opt/names.tar.gz", gzipSync(fixedTar())),
  ],
  "a compressed file in a compressed archive": [
    "compressed opt/outer.tgz!names.py.gz!",
    (root) => void root.write("opt/outer.tgz", gzipSync(tar([file("names.py.gz", gzipSync(FIXED_SOURCE))]))),
  ],
  "a wheel": ["compressed wheels/names.whl!names.py", (root) => root.wheel("wheels/names.whl")],
  "a wheel in a compressed archive": [
    "compressed opt/wheels.tar.gz!names.whl!names.py",
    (root) => {
      root.wheel("opt/names.whl");
      const wheel = readFileSync(path.join(root.root, "opt/names.whl"));
      rmSync(path.join(root.root, "opt/names.whl"));
      root.write("opt/wheels.tar.gz", gzipSync(tar([file("names.whl", wheel)])));
    },
  ],
  "a pack that lies about": [
    "git-object opt/lost:",
    (root) => {
      root.commitFix();
      root.git("repack", "-a", "-d", "-q");
      const directory = path.join(root.repository, ".git/objects/pack");
      const pack = spawnSync("ls", [directory], { encoding: "utf8" })
        .stdout.split("\n")
        .find((n) => n.endsWith(".pack"));
      root.write("opt/lost", readFileSync(path.join(directory, pack!)));
    },
  ],
  "a checkout of a worktree": [
    "file srv/later/src/names.py",
    (root) => {
      root.commitFix();
      root.git("worktree", "add", "--quiet", "../srv/later", "later");
    },
  ],
  "a compiled module without its source": [
    "bytecode usr/lib/python3/site-packages/names.pyc",
    (root) => root.compile("x", "usr/lib/python3/site-packages/names.pyc"),
  ],
  "an untracked file of the workspace": [
    "file app/notes.txt",
    (root) => void root.write("app/notes.txt", FIXED_SOURCE),
  ],
  "the base files themselves": [
    "applied src/names.py",
    (root) => {
      root.write(`app/${SOURCE}`, FIXED_SOURCE);
      root.commit("too late");
    },
  ],
};

describe.skipIf(!canSeal || !hasPython)("searching a root", PATIENT, () => {
  for (const [what, [hit, make]] of Object.entries(COPIES))
    test(`finds ${what}`, async () => {
      make(present);
      const report = await search();
      expect(report.hits.map(({ kind, path: at }) => `${kind} ${at}`.slice(0, hit.length))).toContain(hit);
      expect(report.isClean).toBe(false);
      expect(JSON.stringify(report)).not.toContain("replace_runs_of_separators");
    });

  for (const [program, ending] of [
    ["xz", "xz"],
    ["bzip2", "bz2"],
  ] as const)
    test.skipIf(!has(program))(`finds what ${program} compressed`, async () => {
      present.write(`opt/names.${ending}`, compress(program));
      expect((await search()).hits[0]).toMatchObject({ kind: "compressed", path: `opt/names.${ending}!` });
    });

  test("is clean where nothing is, twice alike, and says how much it looked at", async () => {
    present.write("usr/share/doc/x.gz", gzipSync("nothing to see"));
    present.wheel("wheels/old.whl", BASE_SOURCE);
    const report = await search();
    expect(report).toMatchObject({ isClean: true, hits: [], gaps: [], nHits: 0 });
    expect(report.searchedFiles).toBeGreaterThan(5);
    expect(report.searchedObjects).toBe(
      Number(present.git("cat-file", "--batch-all-objects", "--batch-check").split("\n").length),
    );
    expect(report.decompressedBytes).toBeGreaterThan(BASE_SOURCE.length);
    expect(await search()).toEqual(report);
    expect(JSON.parse(JSON.stringify(report))).toEqual(report);
  });

  test("the files of a package that are called alike in every package are told apart by the package", async () => {
    const goldPatch = present.answers.goldPatch!.replaceAll(SOURCE, "src/names/__init__.py");
    const compiled = (name: string) => `usr/lib/python3/${name}/__pycache__/__init__.cpython-312.pyc`;
    present.compile("x", compiled("collections"));
    const answers = { ...present.answers, goldPatch };
    expect((await search({ answers })).hits.filter(({ kind }) => kind === "bytecode")).toEqual([]);
    present.compile("x", compiled("names"));
    expect((await search({ answers })).hits).toContainEqual(
      expect.objectContaining({ kind: "bytecode", path: compiled("names") }),
    );
  });

  test("a match may lie across the pieces a file is read in", async () => {
    const piece = 1024 * 1024;
    for (const before of [piece - 40, piece - 1, 2 * piece - 200])
      present.write(
        `opt/${before}.bin`,
        Buffer.concat([Buffer.alloc(before, 10), Buffer.from(FIXED_SOURCE)]),
      );
    const found = new Set((await search()).hits.map((hit) => hit.path));
    expect([...found].sort()).toEqual(
      [`opt/${piece - 1}.bin`, `opt/${piece - 40}.bin`, `opt/${2 * piece - 200}.bin`].sort(),
    );
  });

  test("a file of holes costs nothing, and what stands behind them is found", async () => {
    const at = present.write("var/log/lastlog", "x");
    truncateSync(at, 8 * 1024 ** 4);
    const fd = openSync(at, "r+");
    writeSync(fd, Buffer.from(FIXED_SOURCE), 0, undefined, 7 * 1024 ** 4);
    closeSync(fd);
    const report = await search();
    expect(report.hits.map((hit) => hit.path)).toContain("var/log/lastlog");
    expect(report.searchedBytes).toBeLessThan(10 * 1024 * 1024);
  });

  test("a file with several names is read once", async () => {
    linkSync(present.write("opt/one.py", FIXED_SOURCE), path.join(present.root, "opt/two.py"));
    expect(new Set((await search()).hits.map((hit) => hit.path))).toEqual(new Set(["opt/one.py"]));
  });

  test("names that are no UTF-8 are searched and shown", async () => {
    writeFileSync(
      Buffer.concat([Buffer.from(`${present.root}/usr/`), Buffer.from([0xff, 0x0a, 0x41])]),
      FIXED_SOURCE,
    );
    expect((await search()).hits.map((hit) => hit.path)).toContain("usr/%ff%0aA");
  });

  test("links are not followed, out of the root or around", async () => {
    writeFileSync(path.join(present.base, "outside.py"), FIXED_SOURCE);
    mkdirSync(path.join(present.root, "links"));
    symlinkSync("../../outside.py", path.join(present.root, "links/file"));
    symlinkSync("/", path.join(present.root, "links/everything"));
    symlinkSync("..", path.join(present.root, "links/loop"));
    expect(await search()).toMatchObject({ isClean: true });
  });

  test("damaged and encrypted archives are listed and accepted; what is too large to unpack is not", async () => {
    present.write("opt/torn.tar.gz", gzipSync(Buffer.alloc(100_000, 7)).subarray(0, 60));
    present.write("opt/bomb.gz", gzipSync(Buffer.alloc(3_000_000)));
    const tolerant = await search();
    expect(tolerant).toMatchObject({
      isClean: true,
      gaps: [{ path: "opt/torn.tar.gz", reason: "damaged", isAccepted: true }],
    });
    const strict = await search({ limits: { decompressedBytes: 1_000_000 } });
    expect(strict.isClean).toBe(false);
    expect(strict.gaps[0]).toEqual({ path: "opt/bomb.gz", reason: "over-limit", isAccepted: false });
  });

  test("archives nested deeper than the limit are not accepted", async () => {
    let bytes: Buffer = Buffer.from(FIXED_SOURCE);
    for (let depth = 0; depth < 8; depth++) bytes = gzipSync(bytes);
    present.write("opt/deep.gz", bytes);
    const report = await search();
    expect(report.isClean).toBe(false);
    expect(report.gaps[0]).toMatchObject({ reason: "over-limit" });
  });

  test("hidden tests and scripts are found by their own lines, ids and later commits by themselves", async () => {
    const line = "assert normalise('some__odd--name of old') == 'some-odd-name-of-old'";
    const answers: Answers = {
      hiddenFiles: [{ path: "tests/test_names.py", content: `import names\n${line}\n` }],
      hiddenTests: ["tests/test_names.py::test_odd_names", "README.md"],
      laterCommits: ["1234567890abcdef1234567890abcdef12345678"],
    };
    present.write("opt/a.py", `  ${line}`);
    present.write("opt/nodeids", '["tests/test_names.py::test_odd_names"]');
    present.write("opt/version.py", "version = '2.0.dev1+g1234567'");
    const report = await search({ answers });
    expect(report.hits).toEqual([
      { kind: "file", path: "opt/a.py", probe: "hidden-file-1" },
      { kind: "file", path: "opt/nodeids", probe: "test-id-1" },
      { kind: "file", path: "opt/version.py", probe: "commit-1" },
    ]);
    expect(report.probes.map(({ id, source }) => [id, source])).toEqual([
      ["hidden-file-1", "tests/test_names.py:2"],
      // Too few lines that tell: the file as a whole besides.
      ["hidden-file-2", "tests/test_names.py:1"],
      ["test-id-1", "hiddenTests[0]"],
      ["commit-1", "laterCommits[0]"],
    ]);
  });

  test("the list of hits is bounded, their number is not", async () => {
    for (let i = 0; i < 30; i++) present.write(`opt/${i}.py`, FIXED_SOURCE);
    const report = await search({ limits: { listed: 7 } });
    expect(report.hits).toHaveLength(7);
    expect(report.nHits).toBeGreaterThanOrEqual(30 * 3);
  });
});
