/**
 * Owns searching the objects of repositories and stray packs: every object git can make of them, reachable or not.
 * The image's git directories are never git's own (G2): their objects are linked into one made here.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ByteSource } from "../../images/archive/byte-source.js";
import { HostGit } from "../git/host-git.js";
import { linkRepository } from "../git/kinship.js";
import { makeRepository } from "../git/scratch-repository.js";
import type { RootDirectory } from "../root-directory.js";
import type { Findings } from "./findings.js";
import type { Matcher } from "./matcher.js";

const LINE_FEED = 10;
const MAX_BUNDLE_HEADER_BYTES = 4 * 1024 * 1024;

export interface ObjectSearchOptions {
  readonly root: RootDirectory;
  readonly matcher: Matcher;
  readonly findings: Findings;
  readonly scratch: string;
  /** Absolute path of the host's git, if configured. */
  readonly git: string | undefined;
}

export class ObjectSearch {
  readonly #options: ObjectSearchOptions;
  readonly #gitDirectories: string[] = [];
  #git: Promise<HostGit> | undefined;

  constructor(options: ObjectSearchOptions) {
    this.#options = options;
  }

  /** Searches the repository of an image, and keeps its objects at hand for packs that build on them. */
  async gitDirectory(at: string): Promise<void> {
    this.#gitDirectories.push(at);
    await this.#within(async (repository) => {
      linkRepository(this.#options.root, at, repository);
      await this.#objects(repository, at);
    }, at);
  }

  /** Searches a pack, or a bundle, which is a pack behind a list of references. */
  async pack(at: string, chunks: AsyncIterable<Uint8Array>, isBundle: boolean): Promise<void> {
    await this.#within(async (repository) => {
      makeRepository(repository);
      const borrowed = path.join(repository, "objects/info/alternates");
      writeFileSync(borrowed, this.#bases(path.dirname(repository)));
      const source = new ByteSource(chunks);
      if (isBundle) await skipReferences(source);
      const argv = ["index-pack", "--stdin", "--fix-thin"];
      await (await this.#program()).run({ gitDirectory: repository, argv, input: rest(source) });
      rmSync(borrowed);
      await this.#objects(repository, at);
    }, at);
  }

  /** What a pack without its bases builds on, as the lines of an alternates file. */
  #bases(directory: string): string {
    const bases = this.#gitDirectories.map((at, i) => {
      const repository = path.join(directory, `base-${i}`);
      linkRepository(this.#options.root, at, repository);
      return `${repository}/objects\n`;
    });
    return bases.join("");
  }

  async #within(work: (repository: string) => Promise<void>, at: string): Promise<void> {
    const base = mkdtempSync(path.join(this.#options.scratch, "objects-"));
    try {
      await work(path.join(base, "git"));
    } catch {
      // Whatever the reason: there are objects here that were not looked at.
      this.#options.findings.gap(at, "incomplete-pack");
    } finally {
      rmSync(base, { recursive: true });
    }
  }

  #program(): Promise<HostGit> {
    this.#git ??= HostGit.find(this.#options.git);
    return this.#git;
  }

  async #objects(repository: string, at: string): Promise<void> {
    const reader = new ObjectReader(this.#options, at);
    const argv = ["cat-file", "--batch-all-objects", "--batch", "--buffer", "--unordered"];
    await (await this.#program()).run({
      gitDirectory: repository,
      argv,
      onOutput: (chunk) => reader.push(chunk),
    });
    if (!reader.isAtEnd) throw new Error("the list of objects broke off");
  }
}

/** Reads `<id> <type> <size>`, a line feed, the content, a line feed, and so on. */
class ObjectReader {
  readonly #options: ObjectSearchOptions;
  readonly #at: string;
  #header = "";
  /** Of the present object, with the line feed after it. */
  #left = 0;
  #scan: (chunk: Uint8Array) => void = () => {};

  constructor(options: ObjectSearchOptions, at: string) {
    this.#options = options;
    this.#at = at;
  }

  get isAtEnd(): boolean {
    return this.#left === 0 && this.#header === "";
  }

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.byteLength; ) {
      if (this.#left > 0) {
        const part = chunk.subarray(at, at + this.#left);
        this.#scan(part);
        this.#options.findings.decompressedBytes += part.byteLength;
        this.#left -= part.byteLength;
        at += part.byteLength;
        continue;
      }
      const end = chunk.indexOf(LINE_FEED, at);
      this.#header += chunk.toString("latin1", at, end < 0 ? chunk.byteLength : end);
      if (end < 0) return;
      this.#begin();
      at = end + 1;
    }
  }

  #begin(): void {
    const { matcher, findings } = this.#options;
    const [id = "", , size = ""] = this.#header.split(" ");
    const path = `${this.#at}:${id}`;
    this.#scan = matcher.stream((probe) => findings.hit("git-object", path, probe));
    // The id is looked for as well: a commit does not name itself.
    this.#scan(Buffer.from(this.#header));
    this.#left = Number(size) + 1;
    this.#header = "";
    findings.searchedObjects += 1;
  }
}

async function skipReferences(source: ByteSource): Promise<void> {
  let previous = 0;
  for (let n = 0; n < MAX_BUNDLE_HEADER_BYTES; n++) {
    const [byte] = await source.take(1);
    if (byte === undefined) return;
    if (byte === LINE_FEED && previous === LINE_FEED) return;
    previous = byte;
  }
}

async function* rest(source: ByteSource): AsyncGenerator<Uint8Array> {
  for (;;) {
    const chunk = await source.some(Number.MAX_SAFE_INTEGER);
    if (chunk === undefined) return;
    yield chunk;
  }
}
