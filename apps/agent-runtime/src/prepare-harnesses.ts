/**
 * Owns obtaining the runtimes of the configured harnesses before anything is run: into the cache they are later taken
 * from. Needs a package registry, and neither root nor a place to run in.
 */
import type { AgentRuntimeConfig } from "@mortise/contracts";
import { ensureRuntime, ensureToolbox } from "@mortise/harness";
import { harnessFolder, harnessNamed } from "@mortise/harnesses";

/** Rejects with MORTISE_HARNESS_RUNTIME. Configured commands are whatever the operator installed. */
export async function prepareHarnesses(
  { harness }: AgentRuntimeConfig,
  onProgress: (line: string) => void,
): Promise<void> {
  for (const settings of Object.values(harness)) {
    if (!("adapter" in settings)) continue;
    const adapter = harnessNamed(settings.adapter);
    const { python } = await ensureRuntime(adapter, { folder: harnessFolder(adapter.name), onProgress });
    await ensureToolbox({ programs: adapter.needs.programs, ...(python === "" ? {} : { python }) });
    onProgress(`${adapter.name} ${adapter.version} is there`);
  }
}
