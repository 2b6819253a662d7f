/**
 * Owns single files of a sandbox's work tree as the host reads and replaces them. No link is followed on the way, and
 * what is no regular file counts as absent. Does not know what they are for.
 */
import { lstatSync, rmSync } from "node:fs";
import path from "node:path/posix";
import { resolveDirectory } from "../backend/files.js";
import type { Sandbox, SandboxUser } from "../backend/types.js";
import { readWithoutFollowing } from "../patch/snapshot.js";
import { packTar } from "../patch/tar.js";
import type { BaseFile } from "./text-patch.js";

const PROGRAM_TIMEOUT_MS = 30_000;

export interface WorkTreeFacts {
  /** Absolute, inside. */
  readonly workdir: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly user: SandboxUser;
  readonly signal: AbortSignal;
}

export class WorkTreeFiles {
  readonly #sandbox: Sandbox;
  readonly #facts: WorkTreeFacts;

  constructor(sandbox: Sandbox, facts: WorkTreeFacts) {
    this.#sandbox = sandbox;
    this.#facts = facts;
  }

  /** The files there are of these paths, relative to the work tree. */
  async read(paths: readonly string[]): Promise<Map<string, BaseFile>> {
    const found = new Map<string, BaseFile>();
    for (const name of paths) {
      const root = this.#sandbox.hostRoot;
      const file = root === undefined ? await this.#readInside(name) : this.#readOnHost(root, name);
      if (file !== undefined) found.set(name, file);
    }
    return found;
  }

  /** Makes each path what it is to be: a file, or nothing. */
  async write(files: ReadonlyMap<string, BaseFile | undefined>): Promise<void> {
    for (const [name, file] of files) {
      this.#clearWayTo(name);
      if (file === undefined) await this.#remove(name);
    }
    const members = [...files].flatMap(([name, file]) =>
      file === undefined
        ? []
        : [
            {
              name,
              kind: "file" as const,
              mode: file.isExecutable ? 0o755 : 0o644,
              content: file.content,
            },
          ],
    );
    await this.#sandbox.putTar(this.#facts.workdir, await packTar(members), this.#facts.user);
  }

  #readOnHost(root: string, name: string): BaseFile | undefined {
    const file = this.#onHost(root, name);
    const stat = file === undefined ? undefined : lstatSync(file, { throwIfNoEntry: false });
    if (file === undefined || !stat?.isFile()) return undefined;
    return { content: readWithoutFollowing(file), isExecutable: (stat.mode & 0o111) !== 0 };
  }

  #onHost(root: string, name: string): string | undefined {
    const inside = path.join(this.#facts.workdir, name);
    try {
      return path.join(resolveDirectory(root, path.dirname(inside).slice(1)), path.basename(inside));
    } catch {
      return undefined;
    }
  }

  /** Code that ran may have put a link or a file where a directory has to be. */
  #clearWayTo(name: string): void {
    const root = this.#sandbox.hostRoot;
    if (root === undefined) return;
    const parents = path.dirname(name).split("/");
    for (let depth = 1; depth <= parents.length; depth++) {
      const at = this.#onHost(root, parents.slice(0, depth).join("/"));
      const stat = at === undefined ? undefined : lstatSync(at, { throwIfNoEntry: false });
      if (at === undefined || stat === undefined) return;
      if (!stat.isDirectory()) rmSync(at, { force: true });
    }
  }

  /** Of backends that give no directory of the host: only while nothing but the pristine image's programs can run. */
  async #readInside(name: string): Promise<BaseFile | undefined> {
    const file = path.join(this.#facts.workdir, name);
    const cat = await this.#exec(["cat", file]);
    if (cat.outcome.kind !== "exited" || cat.outcome.code !== 0) return undefined;
    const isExecutable = await this.#exec(["test", "-x", file]);
    return {
      content: cat.stdout.bytes,
      isExecutable: isExecutable.outcome.kind === "exited" && isExecutable.outcome.code === 0,
    };
  }

  async #remove(name: string): Promise<void> {
    const root = this.#sandbox.hostRoot;
    if (root === undefined) {
      await this.#exec(["rm", "-rf", path.join(this.#facts.workdir, name)]);
      return;
    }
    const file = this.#onHost(root, name);
    if (file !== undefined) rmSync(file, { recursive: true, force: true });
  }

  #exec(argv: [string, ...string[]]) {
    const { environment, user, signal } = this.#facts;
    return this.#sandbox.exec({ argv, environment, user, timeoutMs: PROGRAM_TIMEOUT_MS, signal });
  }
}
