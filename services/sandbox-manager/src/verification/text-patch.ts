/**
 * Owns applying a unified diff with the host's own git, to copies of the few files it names. Works in a repository
 * made here for it; nothing of a sandbox is executed or trusted. Does not put the result anywhere.
 *
 * T1  The attempts, in order: `git apply`, `git apply --3way`, `git apply --reject`, `patch --fuzz=5`. Each starts from
 *     the same files: what a failed one left is removed, or it would be in the way of the next.
 * T2  An attempt counts only when its program says so and the diff can be taken back from its result.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { lstat, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { MortiseError } from "@mortise/contracts";
import { PatchSyntaxError, parsePatch } from "@mortise/tasks";

const GIT_PLACES = ["/usr/bin/git", "/usr/local/bin/git", "/bin/git"];
const PATCH_PLACES = ["/usr/bin/patch", "/usr/local/bin/patch", "/bin/patch"];
const PROGRAM_TIMEOUT_MS = 30_000;
const MAX_FAILURE_CHARACTERS = 500;

const FIXED = [
  ["core.fsmonitor", ""],
  ["core.hooksPath", "/dev/null"],
  ["core.attributesFile", "/dev/null"],
  ["core.autocrlf", "false"],
  ["user.name", "verifier"],
  ["user.email", "verifier@localhost"],
].flatMap(([key, value]) => ["-c", `${key}=${value}`]);

export type Rung = "apply" | "3way" | "reject" | "fuzz";

export interface BaseFile {
  readonly content: Uint8Array;
  readonly isExecutable: boolean;
}

export type TextPatchResult =
  | {
      readonly rung: Rung;
      /** Every path the diff names, as it is afterwards; undefined where nothing is. */
      readonly files: ReadonlyMap<string, BaseFile | undefined>;
    }
  | { readonly failure: string };

/** The paths a diff names. Throws MORTISE_SANDBOX_PATCH when it is none. */
export function pathsOfDiff(name: string, diff: Uint8Array): string[] {
  try {
    const { files } = parsePatch(textOf(diff));
    return [...new Set(files.flatMap(({ oldPath, newPath }) => [oldPath ?? [], newPath ?? []].flat()))];
  } catch (error) {
    if (!(error instanceof PatchSyntaxError)) throw error;
    throw new MortiseError({
      code: "MORTISE_SANDBOX_PATCH",
      message: `the diff ${name} is none: ${error.message}`,
      cause: error,
    });
  }
}

/**
 * Applies a diff to the files given, by path; a path of the diff that is not given does not exist.
 * @param scratchDirectory of the caller's own, who empties it when a process before it ended in the middle
 * Rejects with MORTISE_SANDBOX_BACKEND when this host has no git.
 */
export async function applyDiff(
  diff: Uint8Array,
  paths: readonly string[],
  base: ReadonlyMap<string, BaseFile>,
  scratchDirectory: string,
): Promise<TextPatchResult> {
  const directory = await mkdtemp(path.join(scratchDirectory, "diff-"));
  try {
    const scratch = new Scratch(directory);
    await scratch.fill(base, textOf(diff));
    for (const rung of ["apply", "3way", "reject", "fuzz"] as const) {
      if (await scratch.attempt(rung)) return { rung, files: await scratch.read(paths) };
      await scratch.reset();
    }
    return { failure: await scratch.whyNot() };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

class Scratch {
  readonly #tree: string;
  readonly #diff: string;
  readonly #home: string;
  #failure = "";

  constructor(directory: string) {
    this.#home = directory;
    this.#tree = path.join(directory, "tree");
    this.#diff = path.join(directory, "change.diff");
  }

  async fill(base: ReadonlyMap<string, BaseFile>, diff: string): Promise<void> {
    await mkdir(this.#tree);
    await writeFile(this.#diff, diff);
    await this.#mustGit("init", "--quiet", "--template=");
    await mkdir(path.join(this.#tree, ".git/info"), { recursive: true });
    // Above any attributes file among what is changed: bytes are to stay as they are.
    await writeFile(
      path.join(this.#tree, ".git/info/attributes"),
      "* -text -ident -filter -working-tree-encoding\n",
    );
    for (const [name, { content, isExecutable }] of base) {
      const file = path.join(this.#tree, name);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, content, { mode: isExecutable ? 0o755 : 0o644 });
    }
    await this.#mustGit("add", "--all", "--force");
    await this.#mustGit("commit", "--quiet", "--allow-empty", "--no-verify", "--message", "base");
  }

  async attempt(rung: Rung): Promise<boolean> {
    if (rung === "fuzz") return this.#fuzz();
    const option = rung === "apply" ? [] : [`--${rung}`];
    if (!(await this.#git("apply", "--whitespace=nowarn", ...option, this.#diff))) return false;
    return this.#git("apply", "--whitespace=nowarn", "--reverse", "--check", this.#diff); // T2
  }

  async #fuzz(): Promise<boolean> {
    const program = PATCH_PLACES.find((place) => existsSync(place));
    if (program === undefined) return false;
    // Not `--batch`, which takes a change back that is there already.
    const options = ["--force", "--fuzz=5", "--no-backup-if-mismatch", "-p1", "-i", this.#diff];
    if (!(await this.#run(program, options))) return false;
    return this.#run(program, [...options, "--reverse", "--dry-run"]); // T2
  }

  async reset(): Promise<void> {
    await this.#mustGit("reset", "--quiet", "--hard");
    await this.#mustGit("clean", "--quiet", "-ffdx");
  }

  /** Why every attempt failed; a change that is there already is no failure of the diff. */
  async whyNot(): Promise<string> {
    const failure = this.#failure;
    const isThere = await this.#git("apply", "--whitespace=nowarn", "--reverse", "--check", this.#diff);
    return isThere ? "what it changes is there already" : failure;
  }

  async read(paths: readonly string[]): Promise<Map<string, BaseFile | undefined>> {
    const files = new Map<string, BaseFile | undefined>();
    for (const name of paths) {
      const file = path.join(this.#tree, name);
      const stat = await lstat(file).catch(() => undefined);
      // A diff can also make a link; nothing that is to be run is taken from where a link leads.
      files.set(
        name,
        stat?.isFile()
          ? { content: await readFile(file), isExecutable: (stat.mode & 0o111) !== 0 }
          : undefined,
      );
    }
    return files;
  }

  async #mustGit(...argv: string[]): Promise<void> {
    if (await this.#git(...argv)) return;
    throw new MortiseError({
      code: "MORTISE_SANDBOX_BACKEND",
      message: `git ${argv[0]} on this host failed: ${this.#failure}`,
    });
  }

  #git(...argv: string[]): Promise<boolean> {
    const program = GIT_PLACES.find((place) => existsSync(place));
    if (program === undefined)
      throw new MortiseError({
        code: "MORTISE_SANDBOX_BACKEND",
        message: `a diff is applied by this host's git, which is not at ${GIT_PLACES.join(", ")}`,
        fix: "Install git on the host of the sandbox-manager.",
      });
    return this.#run(program, [...FIXED, ...argv]);
  }

  async #run(program: string, argv: readonly string[]): Promise<boolean> {
    try {
      await promisify(execFile)(program, argv, {
        cwd: this.#tree,
        timeout: PROGRAM_TIMEOUT_MS,
        env: {
          PATH: "/usr/bin:/bin",
          HOME: this.#home,
          LC_ALL: "C",
          GIT_CONFIG_NOSYSTEM: "1",
          GIT_CONFIG_GLOBAL: "/dev/null",
        },
      });
      return true;
    } catch (error) {
      const { stderr, stdout } = error as { stderr?: string; stdout?: string };
      this.#failure = (stderr || stdout || String(error)).trim().slice(0, MAX_FAILURE_CHARACTERS);
      return false;
    }
  }
}

/** A diff without its last newline is cut, to git and to us: the newline is what is missing. */
function textOf(diff: Uint8Array): string {
  const text = Buffer.from(diff).toString("utf8");
  return text.endsWith("\n") ? text : `${text}\n`;
}
