/** Owns which data sets there are, and which one rows are of. */
import { MortiseError } from "@mortise/contracts";
import type { DatasetName } from "../record.js";
import type { Dataset } from "./dataset.js";
import { multiSweBench } from "./multi-swe-bench.js";
import { openSwe } from "./openswe.js";
import { r2eGym } from "./r2e-gym/r2e-gym.js";
import { sweBench } from "./swe-bench.js";
import { sweBenchMultimodal } from "./swe-bench-multimodal.js";
import { sweBenchPro } from "./swe-bench-pro.js";
import { sweGym } from "./swe-gym.js";
import { sweRebench, sweRebench2 } from "./swe-rebench.js";
import { sweSmith } from "./swe-smith.js";

/** In the order they are asked: what says most of itself first. */
const ALL: readonly Dataset[] = [
  ...[r2eGym, multiSweBench, sweBenchPro, openSwe, sweRebench2, sweRebench],
  ...[sweSmith, sweGym, sweBenchMultimodal, sweBench],
];

export function datasetNamed(name: DatasetName): Dataset {
  return ALL.find((dataset) => dataset.name === name)!;
}

/** The data set of a row by its columns. Throws MORTISE_TASK_SOURCE naming the columns found. */
export function datasetOf(fields: Readonly<Record<string, unknown>>, place: string): Dataset {
  const found = ALL.find((dataset) => dataset.recognises(fields));
  if (found !== undefined) return found;
  throw new MortiseError({
    code: "MORTISE_TASK_SOURCE",
    message: `${place}: of no known data set; its columns are ${Object.keys(fields).join(", ") || "(none)"}.`,
    fix: `Pass --format with one of ${ALL.map(({ name }) => name).join(", ")}.`,
    detail: { source: place },
  });
}
