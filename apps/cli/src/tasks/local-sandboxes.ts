/**
 * Owns sandboxes for a command of its own: a bus and a sandbox-manager on this machine for as long as the command
 * runs, with one directory of tasks. Does not run anything in them (sandbox-executor.ts).
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxService } from "@mortise/contracts";
import type { Client } from "@mortise/kernel";
import { provisionNatsServer } from "../provision/nats-server/provision.js";
import { provisionSandboxRuntime } from "../provision/runc.js";
import { runPaths } from "../quickstart/run-directory.js";
import { writeSiteFile } from "../quickstart/site.js";
import { listenForInterrupts } from "../site/interrupts.js";
import { LocalCluster } from "../site/processes/local-cluster.js";
import { NewestManager } from "../site/processes/newest-manager.js";
import { projectPaths } from "../site/project-paths.js";

export interface LocalSandboxes {
  readonly backend: string;
  /** Of the manager that was started last. */
  readonly client: () => Client<typeof SandboxService>;
  /** Aborted when a process was given up, or the command is interrupted. */
  readonly stop: AbortSignal;
}

/** Starts them, calls `use`, and leaves nothing behind whatever becomes of it, Ctrl-C too: rejects with what ended it. */
export async function withLocalSandboxes<T>(
  tasksDirectory: string,
  note: (line: string) => void,
  use: (sandboxes: LocalSandboxes) => Promise<T>,
): Promise<T> {
  const project = projectPaths();
  const directory = await mkdtemp(join(tmpdir(), "mortise-sandboxes-"));
  const paths = runPaths({ ...project, runs: directory }, "sandboxes");
  await mkdir(paths.directory, { recursive: true });
  const nats = await provisionNatsServer({
    cacheDirectory: project.cache,
    environment: { PATH: process.env.PATH },
    onProgress: note,
  });
  const sandbox = await provisionSandboxRuntime({ cacheDirectory: project.cache, onProgress: note });
  const cluster = new LocalCluster({ project, paths, nats, note });
  const interrupts = listenForInterrupts(() => cluster.supervisor.killAll());
  const stop = AbortSignal.any([cluster.fatal, interrupts.signal]);
  try {
    await cluster.startBus([]);
    await writeSiteFile(project, paths, { natsUrl: cluster.natsUrl, tasksDirectory, sandbox });
    await cluster.startShared(["sandbox-manager"]);
    const manager = new NewestManager(cluster.presences, cluster.bearer);
    try {
      const used = use({ backend: sandbox.backend, client: () => manager.client(), stop });
      return await Promise.race([used, rejected(stop)]);
    } finally {
      manager.close();
    }
  } finally {
    await cluster.stop();
    interrupts.dispose();
    await rm(directory, { recursive: true, force: true });
  }
}

function rejected(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(signal.reason);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}
