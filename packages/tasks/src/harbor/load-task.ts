/**
 * Owns reading one Harbor task directory: which files must be there, and what a service needs to know of them.
 * Does not build images, start sandboxes or grade. Multi-step tasks are refused.
 */
import { lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { type ExpectedTests, readExpectedTests } from "./expected-tests.js";
import { readTaskFile, type TaskFile } from "./task-file.js";

export interface TaskNetwork {
  readonly mode: "public" | "no-network" | "allowlist";
  readonly allowedHosts: readonly string[];
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
    /** Absolute path inside the sandbox. */
    readonly workdir: string;
    readonly cpus: number;
    readonly memoryMb: number;
    readonly storageMb: number;
    readonly buildTimeoutSec: number;
    readonly network: TaskNetwork;
    readonly env: Readonly<Record<string, string>>;
  };
  /** Absent: no limit of the task's own. */
  readonly agentTimeoutSec?: number;
  readonly verifier: { readonly timeoutSec: number; readonly env: Readonly<Record<string, string>> };
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
  const expected = readExpectedTests(at("tests", "expected.json"));
  return {
    id,
    directory: root,
    instruction,
    environment: environmentOf(root, file),
    ...(file.agent.timeout_sec === undefined ? {} : { agentTimeoutSec: file.agent.timeout_sec }),
    verifier: { timeoutSec: file.verifier.timeout_sec, env: file.verifier.env },
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
  return {
    ...(hasDockerfile ? { dockerfile } : {}),
    ...(environment.docker_image === undefined ? {} : { dockerImage: environment.docker_image }),
    ...(statSync(repository, { throwIfNoEntry: false })?.isDirectory() ? { repository } : {}),
    workdir: environment.workdir,
    cpus: environment.cpus,
    memoryMb: environment.memory_mb,
    storageMb: environment.storage_mb,
    buildTimeoutSec: environment.build_timeout_sec,
    network: networkOf(root, environment),
    env: environment.env,
  };
}

/** Hosts without a mode mean an allow-list; hosts with another mode contradict it. */
function networkOf(root: string, environment: TaskFile["environment"]): TaskNetwork {
  const { network_mode: mode, allowed_hosts: hosts, allow_internet: isOpen } = environment;
  if (hosts !== undefined && mode !== undefined && mode !== "allowlist") {
    throw invalid(
      join(root, "task.toml"),
      "environment.allowed_hosts",
      `contradicts network_mode = "${mode}"`,
      'Remove one of them, or set network_mode = "allowlist".',
    );
  }
  if (mode !== undefined || hosts !== undefined)
    return { mode: mode ?? "allowlist", allowedHosts: hosts ?? [] };
  return { mode: isOpen === false ? "no-network" : "public", allowedHosts: [] };
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
