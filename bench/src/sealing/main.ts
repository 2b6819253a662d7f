/**
 * Measures sealing. Usage: node bench/dist/sealing/main.js [--files=DIRECTORY] [--rounds=N] [--out=FILE]. The root is a
 * copy of DIRECTORY (by default the host's Python library) with a repository of 2000 files and 200 commits beside it,
 * in which a later commit holds the fix. Reports what hiding costs, and how fast searching is, both by wall clock and
 * by processor time, since the host is rarely idle. Needs root on Linux and git. Prints JSON.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { hideHistory, type SearchReport, sealRoot, searchForAnswers } from "@mortise/sandbox-manager";
import { load, machine } from "../proxy/machine.js";
import { median, rounded } from "../proxy/statistics.js";

const { values } = parseArgs({
  options: {
    files: { type: "string", default: "/usr/lib/python3" },
    rounds: { type: "string", default: "3" },
    out: { type: "string" },
  },
});
const N_FILES = 2000;
const N_COMMITS = 200;
const LINES_PER_FILE = 120;
const MEGABYTE = 1e6;
const base = mkdtempSync(path.join(tmpdir(), "mortise-bench-sealing-"));
const origin = path.join(base, "origin");

function git(...argv: string[]): string {
  const options = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "gc.auto=0"];
  const done = spawnSync("git", [...options, ...argv], { cwd: origin, encoding: "utf8", maxBuffer: 2 ** 28 });
  if (done.status !== 0) throw new Error(`git ${argv[0]}: ${done.stderr}`);
  return done.stdout;
}

function source(file: number, version: number): string {
  const lines = Array.from(
    { length: LINES_PER_FILE },
    (_, line) =>
      `    value_${line} = combine_${file % 97}(value_${(line * 7) % 100}, version=${version * (line % 3)})\n`,
  );
  return `def function_${file}():\n${lines.join("")}`;
}

function makeRepository(): { goldPatch: string; laterCommits: string[] } {
  mkdirSync(origin, { recursive: true });
  git("init", "--quiet");
  for (let commit = 0; commit < N_COMMITS; commit++) {
    for (let file = commit % 20; file < N_FILES; file += commit === 0 ? 1 : 20) {
      const at = path.join(origin, `package_${file % 40}`, `module_${file}.py`);
      mkdirSync(path.dirname(at), { recursive: true });
      writeFileSync(at, source(file, commit));
    }
    git("add", "--all");
    git("commit", "--quiet", "--message", `commit ${commit}`);
  }
  writeFileSync(
    path.join(origin, "package_1/module_1.py"),
    "def repaired_function_of_the_benchmark(argument_names, values):\n    return combine_argument_names_with_values(argument_names, values)\n",
  );
  git("commit", "--quiet", "--all", "--message", "fix");
  const goldPatch = git("show", "--format=", "HEAD");
  const fix = git("rev-parse", "HEAD").trim();
  git("reset", "--quiet", "--hard", "HEAD~1");
  return { goldPatch, laterCommits: [fix] };
}

async function measured<T>(work: () => Promise<T>): Promise<{ ms: number; cpuMs: number; value: T }> {
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const value = await work();
  const { user, system } = process.cpuUsage(cpu);
  return { ms: performance.now() - startedAt, cpuMs: (user + system) / 1000, value };
}

function searchRow(report: SearchReport, ms: readonly number[], cpuMs: readonly number[]): object {
  const megabytes = (report.searchedBytes + report.decompressedBytes) / MEGABYTE;
  return {
    files: report.searchedFiles,
    megabytes: rounded(report.searchedBytes / MEGABYTE),
    decompressedMegabytes: rounded(report.decompressedBytes / MEGABYTE),
    objects: report.searchedObjects,
    probes: report.probes.length,
    ms: rounded(median(ms)),
    cpuMs: rounded(median(cpuMs)),
    megabytesPerSecond: rounded((megabytes / median(ms)) * 1000),
    megabytesPerCpuSecond: rounded((megabytes / median(cpuMs)) * 1000),
  };
}

async function measure(): Promise<object> {
  const answers = makeRepository();
  const rounds = Number(values.rounds);
  const times: Record<"hide" | "search" | "seal", { ms: number[]; cpuMs: number[] }> = {
    hide: { ms: [], cpuMs: [] },
    search: { ms: [], cpuMs: [] },
    seal: { ms: [], cpuMs: [] },
  };
  const note = (what: keyof typeof times, { ms, cpuMs }: { ms: number; cpuMs: number }) => {
    times[what].ms.push(ms);
    times[what].cpuMs.push(cpuMs);
  };
  let report: SearchReport | undefined;
  let nTracked = 0;
  for (let round = 0; round < rounds; round++) {
    const root = path.join(base, "root");
    const request = (name: string) => ({
      workdir: "/app",
      store: path.join(base, `${name}-${round}`),
      answers,
    });
    cpSync(values.files, path.join(root, "files"), { recursive: true, verbatimSymlinks: true });
    cpSync(origin, path.join(root, "app"), { recursive: true, verbatimSymlinks: true });
    const hidden = await measured(() => hideHistory(root, request("hide")));
    nTracked = hidden.value.nTracked;
    note("hide", hidden);
    const searched = await measured(() => searchForAnswers(root, request("search")));
    if (!searched.value.isClean) throw new Error(`not clean: ${JSON.stringify(searched.value.hits)}`);
    report = searched.value;
    note("search", searched);
    rmSync(path.join(root, "app"), { recursive: true });
    cpSync(origin, path.join(root, "app"), { recursive: true, verbatimSymlinks: true });
    note("seal", await measured(() => sealRoot(root, request("seal"))));
    rmSync(root, { recursive: true });
  }
  const cost = (what: keyof typeof times) => ({
    ms: rounded(median(times[what].ms)),
    cpuMs: rounded(median(times[what].cpuMs)),
  });
  const { search } = times;
  return {
    rounds,
    hide: { nTracked, ...cost("hide") },
    search: searchRow(report!, search.ms, search.cpuMs),
    seal: cost("seal"),
  };
}

try {
  const on = machine();
  const result = { machine: on, ...(await measure()), loadAfter: load() };
  const text = JSON.stringify(result, undefined, 2);
  console.log(text);
  if (values.out !== undefined) await writeFile(values.out, `${text}\n`);
} finally {
  rmSync(base, { recursive: true, force: true });
}
