/**
 * Owns the shape of task.toml (Harbor schema 1.2 and the network keys of 1.4): types, defaults and units.
 * A wrong type is an error; a key that Harbor does not define is a warning, as Harbor itself ignores it.
 * Does not read other files of the task (load-task.ts).
 */
import { readFileSync } from "node:fs";
import { MortiseError } from "@mortise/contracts";
import { parse, TomlError } from "smol-toml";
import { z } from "zod";
import { nearestName } from "./nearest-name.js";

const seconds = z.number().positive();
const environmentVariables = z.record(z.string(), z.string());
const networkMode = z.enum(["public", "no-network", "allowlist"]);
/** Host names and IPv4 addresses: no scheme, port, mask or path. */
const allowedHosts = z.array(z.string().regex(/^[A-Za-z0-9.-]+$/, "must be a host name or an IPv4 address"));
const network = { network_mode: networkMode.optional(), allowed_hosts: allowedHosts.optional() };
const artifact = z.union([
  z.string(),
  z.object({
    source: z.string(),
    destination: z.string().optional(),
    exclude: z.array(z.string()).optional(),
  }),
]);

const Environment = z.object({
  ...network,
  build_timeout_sec: seconds.default(600),
  docker_image: z.string().min(1).optional(),
  os: z.enum(["linux", "windows"]).default("linux"),
  cpus: z.number().positive().default(1),
  memory_mb: z.int().positive().default(2048),
  storage_mb: z.int().positive().default(10_240),
  gpus: z.int().min(0).default(0),
  gpu_types: z.array(z.string()).optional(),
  allow_internet: z.boolean().optional(),
  env: environmentVariables.default({}),
  skills_dir: z.string().optional(),
  workdir: z.string().startsWith("/").default("/workspace"),
  mcp_servers: z.array(z.record(z.string(), z.unknown())).optional(),
  healthcheck: z.record(z.string(), z.unknown()).optional(),
  memory: z.string().optional(),
  storage: z.string().optional(),
});

const Verifier = z.object({
  ...network,
  timeout_sec: seconds.default(600),
  env: environmentVariables.default({}),
  user: z.union([z.string(), z.int()]).optional(),
  environment_mode: z.enum(["shared", "separate"]).optional(),
  environment: z.record(z.string(), z.unknown()).optional(),
  collect: z.array(z.record(z.string(), z.unknown())).optional(),
});

const Agent = z.object({
  ...network,
  timeout_sec: seconds.optional(),
  user: z.union([z.string(), z.int()]).optional(),
});

const Identity = z.object({
  name: z.string().regex(/^[\w.-]+\/[\w.-]+$/, "must be <org>/<name>"),
  description: z.string().optional(),
  authors: z.array(z.object({ name: z.string(), email: z.string().optional() })).optional(),
  keywords: z.array(z.string()).optional(),
});

export const TaskFile = z.object({
  schema_version: z.string().optional(),
  version: z.string().optional(),
  source: z.string().optional(),
  artifacts: z.array(artifact).optional(),
  multi_step_reward_strategy: z.enum(["mean", "final"]).optional(),
  task: Identity.optional(),
  metadata: z.record(z.string(), z.unknown()).default({}),
  verifier: Verifier.prefault({}),
  agent: Agent.prefault({}),
  solution: z.object({ env: environmentVariables.default({}) }).prefault({}),
  environment: Environment.prefault({}),
  steps: z.array(z.record(z.string(), z.unknown())).optional(),
});

export type TaskFile = z.infer<typeof TaskFile>;

/** Reads and checks a task.toml. Throws MORTISE_TASK_INVALID with the path and every wrong field. */
export function readTaskFile(path: string): { file: TaskFile; warnings: string[] } {
  const raw = parseToml(path);
  const result = TaskFile.safeParse(raw);
  if (!result.success) {
    const problems = result.error.issues.map(
      (issue) => `${issue.path.join(".") || "(root)"}: ${issue.message}`,
    );
    throw new MortiseError({
      code: "MORTISE_TASK_INVALID",
      message: `${path}: ${problems.join("; ")}.`,
      fix: `Correct ${result.error.issues.map((issue) => issue.path.join(".")).join(", ")} in ${path}.`,
      detail: { path, fields: result.error.issues.map((issue) => issue.path.join(".")) },
    });
  }
  return {
    file: result.data,
    warnings: unknownKeys(TaskFile, raw, "").map((warning) => `${path}: ${warning}`),
  };
}

function parseToml(path: string): unknown {
  try {
    return parse(readFileSync(path, "utf8"));
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw new MortiseError({
      code: "MORTISE_TASK_INVALID",
      message: `${path}:${error.line}:${error.column}: not valid TOML.`,
      fix: `Correct line ${error.line} of ${path}.`,
      cause: error,
      detail: { path, line: error.line },
    });
  }
}

function unknownKeys(schema: z.ZodType, value: unknown, prefix: string): string[] {
  const shape = objectShape(schema);
  if (shape === undefined || typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const field = `${prefix}${key}`;
    const known = shape[key];
    if (known !== undefined) return unknownKeys(known, inner, `${field}.`);
    const near = nearestName(key, Object.keys(shape));
    return [`unknown key ${field}${near === undefined ? "" : ` (did you mean ${prefix}${near}?)`}`];
  });
}

/** The keys of an object schema, looking through defaults and optionals. */
function objectShape(schema: z.ZodType): Record<string, z.ZodType> | undefined {
  if (schema instanceof z.ZodObject) return schema.shape as Record<string, z.ZodType>;
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault || schema instanceof z.ZodOptional)
    return objectShape(schema.unwrap() as z.ZodType);
  return undefined;
}
