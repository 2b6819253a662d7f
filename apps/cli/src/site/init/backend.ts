/**
 * Owns the sandbox backend of a new site: the best this machine has, or the one asked for if it works here; and whether
 * the tasks can run in it. Starts no sandbox.
 */
import { cpus, tmpdir, totalmem } from "node:os";
import { DockerBackend } from "@mortise/sandbox-manager";
import type { Task } from "@mortise/tasks";
import { INSECURE_NOTE, provisionSandboxRuntime, type SandboxRuntime } from "../../provision/runc.js";
import { projectPaths } from "../project-paths.js";
import { wrong } from "../refusal.js";

const FLAG = "--backend";
export const BACKENDS = ["auto", "runc", "docker", "process"] as const;
export type BackendWish = (typeof BACKENDS)[number];

const MIB = 1024 * 1024;
const DEFAULT_MEMORY_BYTES = 2048 * MIB;
const MOST_NAMED = 3;

/** @throws MORTISE_SANDBOX_BACKEND naming --backend, with why this machine has not got it */
export async function chooseBackend(
  wish: BackendWish,
  onProgress: (line: string) => void,
): Promise<SandboxRuntime> {
  if (wish === "process") return { backend: "process", runc: "runc", notes: [INSECURE_NOTE] };
  if (wish === "docker") {
    const found = await new DockerBackend({ stateDirectory: tmpdir() }).availability();
    if (found.ok) return { backend: "docker", runc: "runc", notes: [] };
    throw unavailable(wish, found.reason);
  }
  const found = await provisionSandboxRuntime({ cacheDirectory: projectPaths().cache, onProgress });
  if (wish === "auto" || found.backend === "runc") return found;
  throw unavailable(wish, found.notes.join("; "));
}

function unavailable(wish: BackendWish, reason: string) {
  return wrong(
    FLAG,
    `${wish} does not work on this machine: ${reason}.`,
    "Install it, or choose another: auto takes the best there is.",
    "MORTISE_SANDBOX_BACKEND",
  );
}

/** @throws MORTISE_SANDBOX_BACKEND when tasks need images that this backend cannot have here */
export async function assertImages({ backend }: SandboxRuntime, tasks: readonly Task[]): Promise<void> {
  const withImage = tasks.filter(
    ({ environment }) => environment.dockerImage !== undefined || environment.repository === undefined,
  );
  if (backend === "process" && withImage.length > 0)
    throw wrong(
      FLAG,
      `${named(withImage)} run in an image, and plain processes have none.`,
      "Use runc or docker, or give these tasks environment/repository and no image.",
      "MORTISE_SANDBOX_BACKEND",
    );
  const toBuild = withImage.filter(({ environment }) => environment.dockerImage === undefined);
  if (toBuild.length === 0) return;
  const engine = await new DockerBackend({ stateDirectory: tmpdir() }).availability();
  if (!engine.ok)
    throw wrong(
      "--tasks",
      `${named(toBuild)} bring a Dockerfile and name no image, and nothing can build it here: ${engine.reason}.`,
      "Start a Docker engine, or build the images and name them as environment.docker_image in task.toml.",
      "MORTISE_SANDBOX_BACKEND",
    );
}

function named(tasks: readonly Task[]): string {
  const names = tasks.slice(0, MOST_NAMED).map(({ id }) => id);
  const more = tasks.length > MOST_NAMED ? ` and ${tasks.length - MOST_NAMED} more` : "";
  return `${names.join(", ")}${more}`;
}

/** What sandboxes of these tasks may use: what the largest asks for, as far as the machine has it. */
export function limitsFor(tasks: readonly Task[]): { readonly cpus: number; readonly memoryBytes: number } {
  const asked = tasks.map(({ environment }) => environment);
  const most = (values: readonly number[], least: number) => values.reduce((a, b) => Math.max(a, b), least);
  return {
    cpus: Math.min(
      cpus().length,
      most(
        asked.map((one) => one.cpus),
        1,
      ),
    ),
    memoryBytes: Math.min(
      totalmem(),
      most(
        asked.map(({ memoryMb }) => memoryMb * MIB),
        DEFAULT_MEMORY_BYTES,
      ),
    ),
  };
}
