/**
 * Owns what a manager that is gone has left on the host, found by its owner mark and looked at only: what `start` of a
 * backend would remove. Everything of it belongs to one state directory.
 */
import { readdirSync, realpathSync } from "node:fs";
import path from "node:path";
import { connectEngine, type EngineSettings, engineAddress, OWNER_LABEL } from "../backend/docker/engine.js";
import { podOwner } from "../backend/kubernetes/backend.js";
import { clusterOf } from "../backend/kubernetes/cluster.js";
import { leftPods } from "../backend/kubernetes/pods.js";
import type { KubernetesSettings } from "../backend/kubernetes/settings.js";
import { ownerMark } from "../backend/owner.js";
import { ProcessSandbox } from "../backend/process/sandbox.js";
import { CgroupHost } from "../backend/runc/cgroup.js";
import { cgroupParent, mountsBelow, runDirectory } from "../backend/runc/sweep.js";
import type { BackendName, SweepReport } from "../backend/types.js";

const NOTHING: SweepReport = { processes: 0, mounts: 0, cgroups: 0, containers: 0, directories: 0 };

export async function leftovers(
  backend: BackendName,
  stateDirectory: string,
  { engine, kubernetes }: { readonly engine?: EngineSettings; readonly kubernetes?: KubernetesSettings },
): Promise<SweepReport> {
  const run = runDirectory(realpathSync(stateDirectory));
  const directories = directoriesIn(run);
  switch (backend) {
    case "runc": {
      const parent = cgroupParent(stateDirectory);
      const host = CgroupHost.detect();
      return {
        ...NOTHING,
        directories,
        mounts: mountsBelow(run).length,
        cgroups: host?.children(parent).length ?? 0,
        processes: host?.processes(parent).length ?? 0,
      };
    }
    case "docker":
      return { ...NOTHING, directories, containers: await containersOf(ownerMark(stateDirectory), engine) };
    case "kubernetes":
      return { ...NOTHING, containers: await podsOf(podOwner(stateDirectory), kubernetes) };
    case "process":
      return { ...NOTHING, directories: ProcessSandbox.countLeftovers(run) };
  }
}

/** 0 where no engine answers: then there is nothing that could be removed through it. */
async function containersOf(owner: string, engine: EngineSettings | undefined): Promise<number> {
  const address = engineAddress(engine);
  if (!address.ok) return 0;
  const docker = connectEngine(address);
  const filters = { label: [`${OWNER_LABEL}=${owner}`] };
  try {
    return (await docker.listContainers({ all: true, filters })).length;
  } catch {
    return 0;
  }
}

/** 0 where no API server answers: then there is nothing that could be removed through it. */
async function podsOf(owner: string, settings: KubernetesSettings | undefined): Promise<number> {
  if (settings === undefined) return 0;
  try {
    return (await leftPods(clusterOf(settings), owner, Date.now())).length;
  } catch {
    return 0;
  }
}

function directoriesIn(run: string): number {
  try {
    return readdirSync(path.resolve(run)).length;
  } catch {
    return 0;
  }
}
