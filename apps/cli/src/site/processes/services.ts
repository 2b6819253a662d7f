/**
 * Owns which service processes a run on this machine has, how they are started, and in which order they stop.
 * Does not know what they do.
 */
import { join } from "node:path";
import type { ServiceName } from "@mortise/contracts";
import type { ProcessSpec } from "../../supervisor/supervisor.js";
import type { ProjectPaths } from "../project-paths.js";
import { NATS_PROCESS } from "./nats-process.js";

/** One process per run; the others serve every run. */
export const RUN_SERVICES: ReadonlySet<ServiceName> = new Set(["scheduler", "trainer"]);
/** Above the 25 s a service gives itself. */
const DRAIN_MS = 28_000;

/**
 * Admission ends first, then what is under way, then what others depend on while they end. The bus is last:
 * everything before it still has something to say.
 */
export const STOP_ORDER: readonly (readonly string[])[] = [
  ["scheduler"],
  ["sandbox-manager", "verifier"],
  ["trainer"],
  ["proxy", "archiver"],
  [NATS_PROCESS],
];

export interface ServicePlaces {
  readonly project: ProjectPaths;
  /** Working directory of the services. */
  readonly directory: string;
  readonly logs: string;
  readonly siteFile: string;
  /** Run file for the services of one run. */
  readonly runFile: string;
}

export function serviceSpec(name: ServiceName, places: ServicePlaces): ProcessSpec {
  const { project, directory, logs, siteFile, runFile } = places;
  const main = join(project.root, "services", name, "dist", "main.js");
  const run = RUN_SERVICES.has(name) ? ["--run", runFile] : [];
  return {
    name,
    argv: [process.execPath, "--enable-source-maps", main, "--site", siteFile, ...run],
    cwd: directory,
    // Compiled code is kept between starts: a restarted service is ready sooner.
    environment: { ...process.env, NODE_COMPILE_CACHE: join(project.cache, "node") },
    logFile: join(logs, `${name}.log`),
    errorFile: join(logs, `${name}.err`),
    drainMs: DRAIN_MS,
    orphanGraceSeconds: [0, 30],
  };
}
