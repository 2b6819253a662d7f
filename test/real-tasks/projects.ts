/**
 * Owns which released bugs are tasks: two consecutive source releases, the part of their difference that repairs the
 * bug, the tests the project added for it, and what a user would have reported. Does not fetch or build anything.
 */
import type { Release } from "./releases.js";

export interface RealProject {
  readonly instance: string;
  /** Owner and name of the project's repository. */
  readonly repo: string;
  readonly base: Release;
  /** The next release, which has the repair. */
  readonly repaired: Release;
  /** Day of the repaired release. */
  readonly createdAt: string;
  readonly gold: {
    readonly file: string;
    /** Hunks with this text only; all of the file when absent. */
    readonly only?: string;
    /** Not hunks with this text. */
    readonly not?: string;
  };
  /** Test files the repaired release changed for it. */
  readonly tests: readonly string[];
  /** Directory of the work tree that is importable. */
  readonly importable: string;
  /** What its tests import, with versions. */
  readonly dependencies: readonly string[];
  readonly statement: string;
  /** Python that shows the bug. */
  readonly reproduction: string;
}

const VERSION = "__version__";

export const PROJECTS: readonly RealProject[] = [
  {
    instance: "python-humanize__humanize-4.12.3",
    repo: "python-humanize/humanize",
    base: {
      name: "humanize",
      version: "4.12.2",
      sha256: "ce0715740e9caacc982bb89098182cf8ded3552693a433311c6a4ce6f4e12a2c",
    },
    repaired: {
      name: "humanize",
      version: "4.12.3",
      sha256: "8430be3a615106fdfceb0b2c1b41c4c98c6b0fc5cc59663a5539b111dd325fb0",
    },
    createdAt: "2025-04-10",
    gold: { file: "src/humanize/filesize.py" },
    tests: ["tests/test_filesize.py"],
    importable: "src",
    dependencies: ["freezegun==1.5.5"],
    statement: `naturalsize shows a fraction for exactly one byte

\`humanize.naturalsize(1)\` is "1 Byte", but the same size as a float, or as a string, gives "1.0 Byte". Every other
size below a kilobyte is shown as a whole number whatever type it is given as; one byte should be, too.`,
    reproduction: "import humanize; print(humanize.naturalsize(1.0), humanize.naturalsize('1'))",
  },
  {
    instance: "martinblech__xmltodict-0.14.2",
    repo: "martinblech/xmltodict",
    base: {
      name: "xmltodict",
      version: "0.14.1",
      sha256: "338c8431e4fc554517651972d62f06958718f6262b04316917008e8fd677a6b0",
    },
    repaired: {
      name: "xmltodict",
      version: "0.14.2",
      sha256: "201e7c28bb210e374999d1dde6382923ab0ed1a8a5faeece48ab525b7810a553",
    },
    createdAt: "2024-10-16",
    gold: { file: "xmltodict.py", not: VERSION },
    tests: ["tests/test_xmltodict.py"],
    importable: ".",
    dependencies: [],
    statement: `Elements with nothing but white space are no longer None

Since 0.14 parse() keeps the blanks of an element that holds only white space: \`parse("<root> </root>")\` gives
\`{"root": " "}\` although strip_whitespace is on by default. Up to 0.13 it was \`{"root": None}\`. Documents that are
merely indented change their meaning by this. With strip_whitespace=False the blanks have to stay.`,
    reproduction: "import xmltodict; print(xmltodict.parse('<root> </root>'))",
  },
  {
    instance: "tkem__cachetools-7.3.2",
    repo: "tkem/cachetools",
    base: {
      name: "cachetools",
      version: "7.3.1",
      sha256: "32e20b38b9cb7ff8d9fa7692e2f8969be3010083e6e7eac54226d51a91425d15",
    },
    repaired: {
      name: "cachetools",
      version: "7.3.2",
      sha256: "43e5db663b58c4337a9959069d93f54dd2e065fdd0438a504cd1100fbeb48beb",
    },
    createdAt: "2026-11-14",
    gold: { file: "src/cachetools/__init__.py", not: VERSION },
    tests: [
      "tests/__init__.py",
      "tests/test_fifo.py",
      "tests/test_lru.py",
      "tests/test_rr.py",
      "tests/test_tlru.py",
      "tests/test_ttl.py",
    ],
    importable: "src",
    dependencies: [],
    statement: `copy.copy() of a cache fails for subclasses with attributes of their own

Since 7.3.1 a shallow copy of a cache is made like a deep one. A subclass that keeps, say, a threading.Lock on the
instance can no longer be copied at all, and other attributes come out as copies instead of being shared. A shallow
copy has to share the attributes and the values with its source and nothing of the cache's own state: adding to,
removing from or evicting from one must never show in the other, for every kind of cache.`,
    reproduction:
      "import copy, threading, cachetools\nclass C(cachetools.LRUCache): pass\nc = C(2); c.lock = threading.Lock(); print(copy.copy(c).lock is c.lock)",
  },
  {
    instance: "python-poetry__tomlkit-0.15.2",
    repo: "python-poetry/tomlkit",
    base: {
      name: "tomlkit",
      version: "0.15.1",
      sha256: "e25bbf38843005246210a12982776f27f99cb9be67160e14434d0c0d21ee1e97",
    },
    repaired: {
      name: "tomlkit",
      version: "0.15.2",
      sha256: "83e32755ba1d20d9340bd069ee97e9f6232ba2346b63ffcba425de01f7e327a6",
    },
    createdAt: "2026-10-16",
    gold: { file: "tomlkit/parser.py", only: '"0E"' },
    tests: ["tests/test_parser.py"],
    importable: ".",
    dependencies: [],
    statement: `Zero with an upper-case exponent is rejected

\`tomlkit.parse("a = 0e2")\` works, \`tomlkit.parse("a = 0E2")\` raises InvalidNumberError. TOML allows both letters for
an exponent, with and without signs, and other mantissas such as 1E2 are read.`,
    reproduction: "import tomlkit; print(tomlkit.parse('a = 0E2'))",
  },
];
