/**
 * Owns the proof that the answers of a task are nowhere in a root filesystem: every regular file, every object of
 * every repository, what is packed in archives. Finds byte strings; what says the same in other words, or in another
 * encoding, it does not see. Changes nothing.
 *
 * It blocks its thread for most of the time; `sealRoot` gives it a thread of its own.
 */
import { closeSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { byteString, isWithin, joined, shownPath } from "../byte-path.js";
import { isGitDirectory } from "../git/repository.js";
import { baseFiles } from "../probes/base-files.js";
import { type ProbeSet, probesOf } from "../probes/probes.js";
import { moduleOfCompiled } from "../probes/python-module.js";
import { type Entry, RootDirectory } from "../root-directory.js";
import { sealFailed } from "../seal-errors.js";
import { DEFAULT_SEARCH_LIMITS, type SealRequest, type SearchReport } from "../types.js";
import { packedKind } from "./content-kind.js";
import { ContentSearch } from "./content-search.js";
import { chunksOf, FileScan } from "./file-scan.js";
import { Findings } from "./findings.js";
import { Matcher } from "./matcher.js";
import { ObjectSearch } from "./object-search.js";

export type SearchRequest = Pick<SealRequest, "workdir" | "answers" | "git" | "limits" | "scratch">;

/**
 * @param directory the root filesystem on the host; nothing may run in it
 * @param ownRepository the git directory `hideHistory` made, relative to the root: what it holds are the files
 * @throws MORTISE_SANDBOX_SEAL when the search could not be made; what is found is in the report
 */
export async function searchForAnswers(
  directory: string,
  request: SearchRequest,
  ownRepository?: string,
): Promise<SearchReport> {
  const root = new RootDirectory(directory);
  const scratch = mkdtempSync(path.join(request.scratch ?? tmpdir(), "mortise-search-"));
  try {
    const probes = probesOf(request.answers, await baseFiles(root, request, scratch));
    const findings = new Findings({ ...DEFAULT_SEARCH_LIMITS, ...request.limits });
    for (const { path: file, source, kind } of probes.applied)
      findings.hit("applied", byteString(file), `${kind} ${source}`);
    await new RootSearch(root, request, probes, findings, scratch).run(ownRepository);
    return { ...findings.list(), probes: probes.reports, distinctiveness: probes.distinctiveness };
  } finally {
    root.close();
    rmSync(scratch, { recursive: true });
  }
}

class RootSearch {
  readonly #root: RootDirectory;
  readonly #probes: ProbeSet;
  readonly #findings: Findings;
  readonly #objects: ObjectSearch;
  readonly #contents: ContentSearch;
  readonly #files: FileScan;
  readonly #names: FileScan;
  /** Several names of one file are one file. */
  readonly #seen = new Set<string>();

  constructor(
    root: RootDirectory,
    request: SearchRequest,
    probes: ProbeSet,
    findings: Findings,
    scratch: string,
  ) {
    const matcher = new Matcher(probes.patterns);
    const limits = { ...DEFAULT_SEARCH_LIMITS, ...request.limits };
    this.#root = root;
    this.#probes = probes;
    this.#findings = findings;
    this.#objects = new ObjectSearch({ root, matcher, findings, scratch, git: request.git });
    this.#contents = new ContentSearch(matcher, findings, limits, this.#objects);
    this.#files = new FileScan(matcher);
    this.#names = new FileScan(new Matcher(probes.namePatterns));
  }

  async run(ownRepository: string | undefined): Promise<void> {
    const packs: string[] = [];
    const gitDirectories: string[] = [];
    const leftOut = (at: string) => this.#findings.gap(at, "special-file-system");
    for (const listing of this.#root.walk("", leftOut, (at) => at !== ownRepository)) {
      if (listing.path !== "" && isGitDirectory(listing)) gitDirectories.push(listing.path);
      const isOfObjects = gitDirectories.some((at) => isWithin(listing.path, joined(at, "objects")));
      const names = new Set(listing.entries.map(({ name }) => name));
      for (const entry of listing.entries) {
        if (entry.kind !== "file") continue;
        if (isOfObjects && isReadByGit(entry.name, names)) continue;
        if ((await this.#file(entry)) === "pack") packs.push(entry.path);
      }
    }
    for (const at of gitDirectories) await this.#objects.gitDirectory(at);
    for (const at of packs) await this.#pack(at);
  }

  /** @returns `pack` for what is to be searched when all repositories are known */
  async #file(entry: Entry): Promise<"pack" | undefined> {
    const file = this.#root.open(entry.path);
    if (file === undefined) throw sealFailed(`${shownPath(entry.path)} changed while it was searched`);
    const { fd, stat } = file;
    try {
      if (stat.nlink > 1) {
        const identity = `${stat.dev}:${stat.ino}`;
        if (this.#seen.has(identity)) return undefined;
        this.#seen.add(identity);
      }
      const found = this.#files.scan(fd, stat, (probe) => this.#findings.hit("file", entry.path, probe));
      this.#findings.searchedFiles += 1;
      this.#findings.searchedBytes += found.nBytes;
      if (entry.name.endsWith(".pyc") && this.#probes.touched.has(moduleOfCompiled(entry.path)))
        this.#names.scan(fd, stat, (probe) => this.#findings.hit("bytecode", entry.path, probe));
      const kind = packedKind(found.head);
      if (kind === "pack" || kind === "bundle") return "pack";
      if (kind !== undefined) await this.#contents.inside(entry.path, fd, stat.size, kind);
      return undefined;
    } finally {
      closeSync(fd);
    }
  }

  async #pack(at: string): Promise<void> {
    const file = this.#root.open(at);
    if (file === undefined) throw sealFailed(`${shownPath(at)} changed while it was searched`);
    try {
      const isBundle = this.#root.text(at, 1) === "#";
      await this.#objects.pack(at, chunksOf(file.fd), isBundle);
    } finally {
      closeSync(file.fd);
    }
  }
}

/** Whether git itself reads this file of an `objects` directory, so that its content is searched object by object. */
function isReadByGit(name: string, siblings: ReadonlySet<string>): boolean {
  if (/^(?:[0-9a-f]{38}|[0-9a-f]{62})$/.test(name)) return true;
  const pack = /^(pack-[0-9a-f]{40,64})\.(?:pack|idx|rev|bitmap)$/.exec(name)?.[1];
  return pack !== undefined && siblings.has(`${pack}.pack`) && siblings.has(`${pack}.idx`);
}
