/**
 * Owns reading one Harbor task directory: which files must be there, and what a service needs to know of them.
 * Does not build images, start sandboxes or grade. Multi-step tasks are refused.
 */
import { lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { type ExpectedTests, readExpectedTests } from "./expected-tests.js";
import { type HealthcheckFile, readTaskFile, sizesOf, type TaskFile } from "./task-file.js";

export interface TaskNetwork {
  readonly mode: "public" | "no-network" | "allowlist";
  readonly allowedHosts: readonly string[];
}

/** A command that must end with 0 before the task's environment counts as ready. Milliseconds. */
export interface Healthcheck {
  /** For the image's `/bin/sh`. */
  readonly command: string;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** Failures in this time do not count. */
  readonly startPeriodMs: number;
  /** Pause between checks in that time. */
  readonly startIntervalMs: number;
  /** Failures in a row after which the environment is unhealthy. */
  readonly retries: number;
}

/** What a stage of the task says of itself; absent: what the environment says. */
export interface TaskRole {
  /** Name or number of the user inside; absent: who owns the work tree. */
  readonly user?: string;
  readonly network: TaskNetwork;
}

export interface Task {
  /** Name of the directory; matches [A-Za-z0-9_-]{1,128}. */
  readonly id: string;
  /** Absolute path. */
  readonly directory: string;
  readonly instruction: string;
  readonly environment: {
    /** Path of environment/Dockerfile, when there is one. */
    readonly dockerfile?: string;
    readonly dockerImage?: string;
    /** Directory whose content is the work tree at `workdir`, for backends that build no image. */
    readonly repository?: string;
    /** Absolute path inside the sandbox; absent: the image's own. */
    readonly workdir?: string;
    readonly cpus: number;
    readonly memoryMb: number;
    readonly storageMb: number;
    readonly buildTimeoutSec: number;
    readonly network: TaskNetwork;
    /** May contain `${NAME}` and `${NAME:-default}` (see `resolveVariables`), as all variables of a task. */
    readonly env: Readonly<Record<string, string>>;
    readonly healthcheck?: Healthcheck;
  };
  readonly agent: TaskRole;
  /** Absent: no limit of the task's own. */
  readonly agentTimeoutSec?: number;
  readonly verifier: TaskRole & {
    readonly timeoutSec: number;
    readonly env: Readonly<Record<string, string>>;
  };
  readonly tests: {
    /** Copied to /tests when a trial is verified, never before. */
    readonly directory: string;
    readonly script: string;
    /** Names that decide the verdict, from tests/expected.json; absent in tasks graded by a reward file. */
    readonly expected?: ExpectedTests;
  };
  readonly solution?: {
    readonly directory: string;
    readonly script: string;
    /** Path of solution/gold.patch, a unified diff against the work tree, when there is one. */
    readonly patch?: string;
    readonly env: Readonly<Record<string, string>>;
  };
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Keys that were ignored, with the nearest known name. */
  readonly warnings: readonly string[];
}

/** Where the work tree is in sandboxes of tasks that name no image. */
const DEFAULT_WORKDIR = "/workspace";

/** What a task may be called: it is part of bus subjects, cgroups and directories. */
export const TASK_ID = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * What is read, mounted or copied by name. None may be a link: the digest covers where a link points, not what is
 * there, and a link out of the task would carry files of this machine into a sandbox.
 */
const PARTS = [
  ...["task.toml", "instruction.md"],
  ...["environment", "environment/Dockerfile", "environment/repository"],
  ...["tests", "tests/test.sh", "tests/expected.json"],
  ...["solution", "solution/solve.sh", "solution/gold.patch"],
];

/** Reads and checks a task directory. Throws MORTISE_TASK_INVALID naming the path, the field and the fix. */
export function loadTask(directory: string): Task {
  const root = resolve(directory);
  const id = basename(root);
  if (!TASK_ID.test(id)) {
    throw invalid(root, "directory name", `"${id}" is not an id`, "Use letters, digits, '_' and '-' only.");
  }
  const at = (...parts: string[]) => join(root, ...parts);
  for (const part of PARTS) {
    if (lstatSync(at(part), { throwIfNoEntry: false })?.isSymbolicLink())
      throw invalid(root, part, "is a symbolic link", "Put what it names in its place.");
  }
  for (const required of ["task.toml", "instruction.md", "tests/test.sh"]) {
    if (!isFile(at(required))) throw invalid(root, required, "is missing", `Create ${at(required)}.`);
  }
  const { file, warnings } = readTaskFile(at("task.toml"));
  if (file.steps !== undefined) {
    throw invalid(
      at("task.toml"),
      "steps",
      "multi-step tasks are not supported",
      "Split it into single tasks.",
    );
  }
  const instruction = readFileSync(at("instruction.md"), "utf8");
  if (instruction.trim() === "") {
    throw invalid(root, "instruction.md", "is empty", "Write what the agent has to do.");
  }
  const environment = environmentOf(root, file);
  const expected = readExpectedTests(at("tests", "expected.json"));
  return {
    id,
    directory: root,
    instruction,
    environment,
    ...(file.agent.timeout_sec === undefined ? {} : { agentTimeoutSec: file.agent.timeout_sec }),
    agent: roleOf(root, "agent", file, environment.network),
    verifier: {
      ...roleOf(root, "verifier", file, environment.network),
      timeoutSec: file.verifier.timeout_sec,
      env: file.verifier.env,
    },
    tests: {
      directory: at("tests"),
      script: at("tests", "test.sh"),
      ...(expected === undefined ? {} : { expected }),
    },
    ...solutionOf(root, file),
    metadata: file.metadata,
    warnings,
  };
}

/** The ids of the task directories in a folder: every subdirectory with a task.toml, sorted. */
export function listTaskIds(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && isFile(join(directory, entry.name, "task.toml")))
    .map((entry) => entry.name)
    .sort();
}

function environmentOf(root: string, file: TaskFile): Task["environment"] {
  const { environment } = file;
  const dockerfile = join(root, "environment", "Dockerfile");
  const hasDockerfile = isFile(dockerfile);
  if (!hasDockerfile && environment.docker_image === undefined) {
    throw invalid(
      root,
      "environment.docker_image",
      "is absent and there is no environment/Dockerfile",
      "Add environment/Dockerfile, or name an image in task.toml.",
    );
  }
  if (environment.os !== "linux") {
    throw invalid(join(root, "task.toml"), "environment.os", "only linux is supported", 'Set os = "linux".');
  }
  const repository = join(root, "environment", "repository");
  const hasRepository = statSync(repository, { throwIfNoEntry: false })?.isDirectory() === true;
  return {
    ...(hasDockerfile ? { dockerfile } : {}),
    ...(environment.docker_image === undefined ? {} : { dockerImage: environment.docker_image }),
    ...(hasRepository ? { repository } : {}),
    ...workdirOf(environment, hasRepository),
    cpus: environment.cpus,
    ...sizesOf(environment),
    buildTimeoutSec: environment.build_timeout_sec,
    network: networkOf(root, "environment", environment) ?? {
      mode: environment.allow_internet === false ? "no-network" : "public",
      allowedHosts: [],
    },
    env: environment.env,
    ...(environment.healthcheck === undefined ? {} : { healthcheck: healthcheckOf(environment.healthcheck) }),
  };
}

/** An image, named or built, knows where its work tree is; a repository without one is where every sandbox has it. */
function workdirOf(
  { workdir, docker_image: image }: TaskFile["environment"],
  hasRepository: boolean,
): { workdir?: string } {
  if (workdir !== undefined) return { workdir };
  return image === undefined && hasRepository ? { workdir: DEFAULT_WORKDIR } : {};
}

function healthcheckOf(file: HealthcheckFile): Healthcheck {
  const ms = (value: number | undefined, seconds: number) => Math.round((value ?? seconds) * 1000);
  return {
    command: file.command,
    intervalMs: ms(file.interval_sec ?? file.interval, 5),
    timeoutMs: ms(file.timeout_sec ?? file.timeout, 30),
    startPeriodMs: ms(file.start_period_sec ?? file.start_period, 0),
    startIntervalMs: ms(file.start_interval_sec ?? file.start_interval, 5),
    retries: file.retries,
  };
}

function roleOf(root: string, role: "agent" | "verifier", file: TaskFile, around: TaskNetwork): TaskRole {
  const { user } = file[role];
  const network = networkOf(root, role, file[role]) ?? around;
  return { network, ...(user === undefined ? {} : { user: String(user) }) };
}

/**
 * What one table says of the network, undefined if nothing. Hosts without a mode mean an allow-list; hosts with
 * another mode contradict it.
 */
function networkOf(
  root: string,
  table: "environment" | "agent" | "verifier",
  keys: Pick<TaskFile["environment"], "network_mode" | "allowed_hosts">,
): TaskNetwork | undefined {
  const { network_mode: mode, allowed_hosts: hosts } = keys;
  if (hosts !== undefined && mode !== undefined && mode !== "allowlist") {
    throw invalid(
      join(root, "task.toml"),
      `${table}.allowed_hosts`,
      `contradicts network_mode = "${mode}"`,
      'Remove one of them, or set network_mode = "allowlist".',
    );
  }
  if (mode === undefined && hosts === undefined) return undefined;
  return { mode: mode ?? "allowlist", allowedHosts: hosts ?? [] };
}

function solutionOf(root: string, file: TaskFile): Pick<Task, "solution"> {
  const script = join(root, "solution", "solve.sh");
  if (!isFile(script)) return {};
  const patch = join(root, "solution", "gold.patch");
  return {
    solution: {
      directory: join(root, "solution"),
      script,
      ...(isFile(patch) ? { patch } : {}),
      env: file.solution.env,
    },
  };
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function invalid(path: string, field: string, problem: string, fix: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_INVALID",
    message: `${path}: ${field}: ${problem}.`,
    fix,
    detail: { path, field },
  });
}
