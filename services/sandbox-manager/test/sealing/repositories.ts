/**
 * What tests of sealing share: root filesystems with real git repositories in them, in which a fix is hidden in one
 * way or another. Files of the root are made by the test's own git, never by the code under test.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Answers, SealRequest } from "../../src/sealing/types.js";

const ZIP_PROGRAM =
  "import sys,zipfile;zipfile.ZipFile(sys.argv[1],'w',zipfile.ZIP_DEFLATED).writestr(*sys.argv[2:])";
const COMPILE_PROGRAM =
  "import sys,py_compile;py_compile.compile(sys.argv[1],cfile=sys.argv[2],doraise=True)";

function python(...argv: string[]): number | null {
  return spawnSync("python3", argv).status;
}

/** Wheels and compiled files are made by Python itself. */
export const hasPython = python("-c", "") === 0;
export const hasGit = spawnSync("git", ["--version"]).status === 0;
/** Resolving below a root takes openat2; keeping owners takes root. */
export const canSeal = process.platform === "linux" && process.getuid?.() === 0 && hasGit;

/** Each case starts dozens of processes, and the machine may be busy. */
export const PATIENT = { timeout: 120_000 } as const;

export const BASE_SOURCE = `def normalise(name):
    """Gives a name in its canonical spelling."""
    return name.strip().lower()


def accepted(name):
    return normalise(name) != ""
`;
/** What nobody may see: long lines of several words, and names the base does not have. */
export const FIXED_SOURCE = `def normalise(name):
    """Gives a name in its canonical spelling."""
    without_separators = replace_runs_of_separators(name.strip())
    return without_separators.casefold().removesuffix("-deprecated")


def replace_runs_of_separators(name):
    """Joins the words of a name with single hyphens, whatever stood between them."""
    return "-".join(part for part in SEPARATORS_BETWEEN_WORDS.split(name) if part)


def accepted(name):
    return normalise(name) != ""
`;
export const SOURCE = "src/names.py";

export class TestRoot {
  readonly base = mkdtempSync(path.join(tmpdir(), "mortise-sealing-"));
  readonly root = path.join(this.base, "root");
  readonly repository = path.join(this.root, "app");
  /** Of the fix, wherever it was committed. */
  fix = "";
  #nStores = 0;

  /** A repository at `/app` with two commits; the fix is nowhere yet. */
  constructor() {
    mkdirSync(path.join(this.root, "root"), { recursive: true });
    mkdirSync(path.join(this.root, "usr/bin"), { recursive: true });
    this.write("app/README.md", "# names\n");
    this.git("init", "--quiet", "--initial-branch=trunk");
    this.commit("first");
    this.write(`app/${SOURCE}`, BASE_SOURCE);
    this.write("app/.gitignore", "*.log\nbuild/\n__pycache__/\n");
    this.write("app/build/kept.txt", "tracked although it is ignored\n");
    this.git("add", "--force", "build/kept.txt");
    this.commit("base");
  }

  write(file: string, content: string | Uint8Array, mode = 0o644): string {
    const at = path.join(this.root, file);
    mkdirSync(path.dirname(at), { recursive: true });
    writeFileSync(at, content, { mode });
    return at;
  }

  read(file: string): string {
    return readFileSync(path.join(this.root, file), "utf8");
  }

  git(...argv: string[]): string {
    return this.gitIn(this.repository, ...argv);
  }

  gitIn(directory: string, ...argv: string[]): string {
    const identity = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"];
    const options = ["-c", "protocol.file.allow=always", "-c", "gc.auto=0", "-c", "safe.directory=*"];
    const { status, stdout, stderr } = spawnSync("git", [...identity, ...options, ...argv], {
      cwd: directory,
      encoding: "utf8",
      env: {
        PATH: process.env.PATH,
        GIT_CONFIG_GLOBAL: "/dev/null",
        GIT_CONFIG_NOSYSTEM: "1",
        HOME: this.base,
      },
    });
    if (status !== 0) throw new Error(`git ${argv.join(" ")}: ${stderr}`);
    return stdout.trim();
  }

  commit(message: string): string {
    this.git("add", "--all");
    this.git("commit", "--quiet", "--allow-empty", "--message", message);
    return this.git("rev-parse", "HEAD");
  }

  /** Commits the fix on a branch of its own and goes back to the base. */
  commitFix(branch = "later"): string {
    this.git("checkout", "--quiet", "-b", branch);
    this.write(`app/${SOURCE}`, FIXED_SOURCE);
    this.fix = this.commit("fix");
    this.git("checkout", "--quiet", "trunk");
    return this.fix;
  }

  /** The fix's branch is gone; only reflogs know its commit, until they are expired. */
  forgetFix(): void {
    this.git("branch", "--quiet", "-D", "later");
  }

  expireReflogs(): void {
    this.git("reflog", "expire", "--expire=now", "--all");
  }

  /** A commit of a tree with one blob, on no branch. */
  commitOfBlob(blob: string): string {
    const tree = spawnSync("git", ["mktree"], {
      cwd: this.repository,
      encoding: "utf8",
      input: `100644 blob ${blob}\tfixed.py\n`,
    }).stdout.trim();
    return this.git("commit-tree", tree, "-m", "a note");
  }

  /** A wheel of a version with the fix, compressed as pip keeps them. */
  wheel(file: string, source = FIXED_SOURCE): void {
    const at = this.write(file, "");
    const made = python("-c", ZIP_PROGRAM, at, "names.py", source);
    if (made !== 0) throw new Error("python could not make a wheel");
  }

  /** Compiles the fixed source as if it lay in `directory`, and leaves the base there. */
  compile(directory: string, target = `${directory}/__pycache__/names.cpython-312.pyc`): void {
    const source = path.join(this.base, "names.py");
    writeFileSync(source, FIXED_SOURCE);
    const at = this.write(target, "");
    if (python("-c", COMPILE_PROGRAM, source, at) !== 0) throw new Error("python could not compile");
  }

  get answers(): Answers {
    return { goldPatch: goldPatch(), ...(this.fix !== "" && { laterCommits: [this.fix] }) };
  }

  request(changes: Partial<SealRequest> = {}): SealRequest {
    const store = path.join(this.base, `store-${++this.#nStores}`);
    return { workdir: "/app", store, answers: this.answers, ...changes };
  }

  remove(): void {
    rmSync(this.base, { recursive: true, force: true });
  }
}

/** As git writes it. */
export function goldPatch(): string {
  const base = mkdtempSync(path.join(tmpdir(), "mortise-patch-"));
  try {
    for (const [side, text] of [
      ["a", BASE_SOURCE],
      ["b", FIXED_SOURCE],
    ] as const) {
      mkdirSync(path.join(base, side, path.dirname(SOURCE)), { recursive: true });
      writeFileSync(path.join(base, side, SOURCE), text);
    }
    const argv = ["diff", "--no-index", "--no-prefix", `a/${SOURCE}`, `b/${SOURCE}`];
    return spawnSync("git", argv, { cwd: base, encoding: "utf8" }).stdout;
  } finally {
    rmSync(base, { recursive: true });
  }
}
