/**
 * Owns the processes of one run on this machine, on a site whose shared services are up: its scheduler and its trainer
 * unless others are named. Restarts what dies, gives up what cannot start, stops in order. Does not follow the run.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { MortiseError, type ServiceName, type SiteConfig } from "@mortise/contracts";
import { type ProcessStatus, Supervisor } from "../../supervisor/supervisor.js";
import { projectPaths } from "../project-paths.js";
import { RUN_SERVICES, STOP_ORDER, serviceSpec } from "./services.js";

export interface RunProcessesOptions {
  readonly siteFile: string;
  readonly site: SiteConfig;
  readonly runFile: string;
  /** Told of restarts. */
  readonly note: (line: string) => void;
}

export class RunProcesses {
  readonly #options: RunProcessesOptions;
  readonly #supervisor: Supervisor;
  readonly #fatal = new AbortController();

  constructor(options: RunProcessesOptions) {
    this.#options = options;
    this.#supervisor = new Supervisor({
      onRestart: (name, reason) => options.note(`${name} ended (${reason}); starting it again`),
      onGaveUp: (name, reason, spec) => this.#fatal.abort(gaveUp(name, reason, spec.errorFile)),
      onFault: (error) => this.#fatal.abort(error),
    });
  }

  /** Aborted, with the error as its reason, when the run cannot go on. */
  get fatal(): AbortSignal {
    return this.#fatal.signal;
  }

  async start(names: Iterable<ServiceName> = RUN_SERVICES): Promise<void> {
    const { site, siteFile, runFile } = this.#options;
    const { directory } = site.state;
    const logs = join(directory, "logs");
    await mkdir(logs, { recursive: true, mode: 0o700 });
    const places = { project: projectPaths(), directory, logs, siteFile, runFile };
    for (const name of names) this.#supervisor.start(serviceSpec(name, places));
  }

  status(): ProcessStatus[] {
    return this.#supervisor.status();
  }

  /** Drains; resolves when none of them is left. */
  stop(): Promise<void> {
    return this.#supervisor.stopInOrder(STOP_ORDER);
  }

  killAll(): void {
    this.#supervisor.killAll();
  }
}

function gaveUp(name: string, reason: string, where: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_SERVICE_DOWN",
    message: `${name}: ${reason}; see ${where}.`,
    detail: { field: name },
  });
}
