/**
 * Owns the engine section of the run configuration: what samples a run's turns. Does not hold secrets: the key
 * of a server is read from the environment of the proxy.
 */
import { z } from "zod";

const record = z
  .string()
  .min(1)
  .optional()
  .describe(
    "Directory where every request and reply of the engine is written, as JSON lines; off when absent.",
  );

const Embedded = z.strictObject({ kind: z.literal("embedded").describe("The built-in decoder."), record });

const Vllm = z.strictObject({
  kind: z.literal("vllm").describe("vLLM servers, over HTTP, that serve the run's checkpoint."),
  urls: z
    .array(z.url({ protocol: /^https?$/ }))
    .min(1)
    .describe("Base URLs of the servers, without /v1."),
  model: z
    .string()
    .min(1)
    .optional()
    .describe("Name the servers serve the policy under; their only one when absent."),
  weightsDirectory: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Directory that proxy and servers see under one path, for new weights; without it only version 0 is served.",
    ),
  stallTimeoutMs: z
    .int()
    .min(1000)
    .default(600_000)
    .describe("A turn that hears nothing from its server for this long has failed."),
  record,
});

const Scripted = z.strictObject({
  kind: z.literal("scripted").describe("Plays the replies of a script file."),
  file: z.string().min(1).describe("Script: JSON lines."),
  record,
});

const Replay = z.strictObject({
  kind: z.literal("replay").describe("Plays what a recording holds, and refuses what differs from it."),
  file: z.string().min(1).describe("Recording: JSON lines, as written under engine.record."),
});

export const EngineConfig = z.discriminatedUnion("kind", [Embedded, Vllm, Scripted, Replay]);

export type EngineConfig = z.infer<typeof EngineConfig>;
