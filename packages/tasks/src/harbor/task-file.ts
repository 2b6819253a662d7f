/**
 * Owns the shape of task.toml (Harbor schema 1.0 to 1.4): types, defaults and units, old names included.
 * A wrong type is an error; a key that Harbor does not define is a warning, as Harbor itself ignores it; so is a
 * key that Harbor defines and nothing here acts on. Does not read other files of the task (load-task.ts).
 */
import { readFileSync } from "node:fs";
import { MortiseError } from "@mortise/contracts";
import { parse, TomlError } from "smol-toml";
import { z } from "zod";
import { megabytesOf, SIZE } from "./data-size.js";
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

/** Names with `_sec` and, as some writers have them, without. */
const Healthcheck = z.object({
  command: z.string().min(1),
  interval_sec: seconds.optional(),
  interval: seconds.optional(),
  timeout_sec: seconds.optional(),
  timeout: seconds.optional(),
  start_period_sec: z.number().min(0).optional(),
  start_period: z.number().min(0).optional(),
  start_interval_sec: seconds.optional(),
  start_interval: seconds.optional(),
  retries: z.int().min(1).default(3),
});

const user = z.union([z.string().min(1), z.int().min(0)]).optional();
const size = z.string().regex(SIZE, "must be a number and K, M, G or T").optional();

const Environment = z.object({
  ...network,
  build_timeout_sec: seconds.default(600),
  docker_image: z.string().min(1).optional(),
  os: z.enum(["linux", "windows"]).default("linux"),
  cpus: z.number().positive().default(1),
  memory_mb: z.int().positive().optional(),
  storage_mb: z.int().positive().optional(),
  gpus: z.int().min(0).default(0),
  gpu_types: z.array(z.string()).optional(),
  allow_internet: z.boolean().optional(),
  env: environmentVariables.default({}),
  skills_dir: z.string().optional(),
  workdir: z.string().startsWith("/").optional(),
  mcp_servers: z.array(z.record(z.string(), z.unknown())).optional(),
  healthcheck: Healthcheck.optional(),
  memory: size,
  storage: size,
});

const Verifier = z.object({
  ...network,
  timeout_sec: seconds.default(600),
  env: environmentVariables.default({}),
  user,
  environment_mode: z.enum(["shared", "separate"]).optional(),
  environment: z.record(z.string(), z.unknown()).optional(),
  collect: z.array(z.record(z.string(), z.unknown())).optional(),
});

const Agent = z.object({
  ...network,
  timeout_sec: seconds.optional(),
  user,
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
  artifacts: z.union([artifact, z.array(artifact)]).optional(),
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
export type HealthcheckFile = z.infer<typeof Healthcheck>;

const KNOWN_SCHEMAS = ["1.0", "1.1", "1.2", "1.3", "1.4"];
const DEFAULT_MEMORY_MB = 2048;
const DEFAULT_STORAGE_MB = 10_240;

/** Memory and storage under their present names, whichever name the file uses. Megabytes. */
export function sizesOf(environment: TaskFile["environment"]): { memoryMb: number; storageMb: number } {
  const { memory, storage } = environment;
  const old = (text: string | undefined) => (text === undefined ? undefined : megabytesOf(text));
  return {
    memoryMb: environment.memory_mb ?? old(memory) ?? DEFAULT_MEMORY_MB,
    storageMb: environment.storage_mb ?? old(storage) ?? DEFAULT_STORAGE_MB,
  };
}

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
    warnings: [...unknownKeys(TaskFile, raw, ""), ...unused(result.data)].map(
      (warning) => `${path}: ${warning}`,
    ),
  };
}

/** What Harbor would act on and nothing here does: said, since leaving it out changes the task. */
function unused(file: TaskFile): string[] {
  const { environment, verifier } = file;
  const schema = file.schema_version ?? file.version;
  const found: string[] = [];
  if (schema !== undefined && !KNOWN_SCHEMAS.includes(schema))
    found.push(`schema_version ${schema} is read as ${KNOWN_SCHEMAS.at(-1)}`);
  for (const [name, old, present] of [
    ["memory", environment.memory, environment.memory_mb],
    ["storage", environment.storage, environment.storage_mb],
  ] as const)
    if (old !== undefined && present !== undefined)
      found.push(`environment.${name} is an old name and is passed over for environment.${name}_mb`);
  const keys: readonly [string, boolean][] = [
    ["environment.gpus", environment.gpus > 0],
    ["environment.skills_dir", environment.skills_dir !== undefined],
    ["environment.mcp_servers", (environment.mcp_servers ?? []).length > 0],
    ["verifier.environment", verifier.environment !== undefined],
    ["verifier.collect", (verifier.collect ?? []).length > 0],
    ["artifacts", file.artifacts !== undefined],
  ];
  for (const [key, isSet] of keys) if (isSet) found.push(`${key} is not acted on`);
  return found;
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
