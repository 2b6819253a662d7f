/**
 * Owns a whole conformance run of one harness: its runtime obtained, its cases one after another over each of its
 * model APIs. Harnesses are not patched, and nothing is turned off that a trial would have on.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { ensureRuntime, type HarnessAdapter } from "@mortise/harness";
import { harnessFolder } from "@mortise/harnesses";
import { CASES, type ConformanceCase } from "./cases.js";
import { type CaseResult, notApplicable, runCase } from "./run-case.js";
import { ConformanceWorld } from "./world.js";

export interface ConformanceOptions {
  readonly adapter: HarnessAdapter;
  /** All of the harness's when empty. */
  readonly wireApis: readonly string[];
  /** All standard cases when empty. */
  readonly cases: readonly string[];
  /** Keeps homes, repositories and the bus's files, and says where. */
  readonly keeps: boolean;
  /** Aborting ends the harness that runs, and the run. */
  readonly signal: AbortSignal;
  readonly note: (line: string) => void;
  readonly onResult: (result: CaseResult) => void;
}

export interface ConformanceReport {
  readonly harness: string;
  readonly version: string;
  readonly results: readonly CaseResult[];
  readonly passed: number;
  readonly failed: number;
  readonly notApplicable: number;
}

export async function runConformance(options: ConformanceOptions): Promise<ConformanceReport> {
  const { adapter, note } = options;
  const wireApis = chosen(adapter.wireApis, options.wireApis, "wire");
  const names = chosen(
    CASES.map(({ name }) => name),
    options.cases,
    "case",
  );
  const runtime = await ensureRuntime(adapter, { folder: harnessFolder(adapter.name), onProgress: note });
  const directory = await mkdtemp(join(tmpdir(), "mortise-conformance-"));
  const world = await ConformanceWorld.start(directory, note);
  const results: CaseResult[] = [];
  try {
    for (const wireApi of wireApis) {
      let firstPromptTokens = 0;
      for (const conformanceCase of CASES) {
        const isAsked = names.includes(conformanceCase.name);
        // Windows are chosen by the harness's first prompt, which the first case shows.
        if (!isAsked && !(conformanceCase === CASES[0] && needsMeasure(names))) continue;
        const lacking = conformanceCase.lacks(adapter, wireApi);
        const place = join(directory, `${wireApi}-${conformanceCase.name}`);
        await mkdir(place);
        const { signal } = options;
        const run = {
          adapter,
          runtime,
          wireApi,
          conformanceCase,
          firstPromptTokens,
          directory: place,
          signal,
        };
        const result =
          lacking === undefined
            ? await runCase(world, run)
            : notApplicable(wireApi, conformanceCase.name, lacking);
        firstPromptTokens ||= result.firstPromptTokens;
        if (!options.keeps) await rm(place, { recursive: true, force: true });
        if (!isAsked) continue;
        results.push(result);
        options.onResult(result);
      }
    }
  } finally {
    await world.stop();
    if (options.keeps) note(`kept: ${directory}`);
    else await rm(directory, { recursive: true, force: true });
  }
  const count = (outcome: CaseResult["outcome"]) => results.filter((one) => one.outcome === outcome).length;
  return {
    harness: adapter.name,
    version: adapter.version,
    results,
    passed: count("pass"),
    failed: count("fail"),
    notApplicable: count("n/a"),
  };
}

function needsMeasure(names: readonly string[]): boolean {
  const sized = (one: ConformanceCase) => one.told !== undefined || one.window !== undefined;
  return CASES.some((one) => names.includes(one.name) && sized(one));
}

function chosen<T extends string>(all: readonly T[], asked: readonly string[], field: string): readonly T[] {
  const unknown = asked.find((name) => !all.some((one) => one === name));
  if (unknown !== undefined)
    throw new MortiseError({
      code: "MORTISE_OPERATOR_USAGE",
      message: `${JSON.stringify(unknown)} is none of ${all.join(", ")}.`,
      fix: `Name one of: ${all.join(", ")}.`,
      detail: { field: `--${field}` },
    });
  return asked.length === 0 ? all : all.filter((one) => asked.includes(one));
}
