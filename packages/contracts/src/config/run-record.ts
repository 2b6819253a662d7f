/**
 * Owns what KV `runs` holds of a run, as JSON: the configuration it was started with. Written once by the
 * scheduler; whoever serves the run reads its settings here and nowhere else.
 */
import { z } from "zod";
import { RunConfig } from "./run.js";

export const RunRecord = z.strictObject({
  schema: z.literal(1).describe("Version of this record."),
  config: RunConfig,
  tasksDigest: z
    .string()
    .describe("SHA-256 (hex) of the tasks the run draws from, both splits in index order."),
});

export type RunRecord = z.infer<typeof RunRecord>;
