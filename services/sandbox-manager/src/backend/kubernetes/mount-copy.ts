/**
 * Owns how the directories a sandbox mounts come to its pod: where the cluster has the same files already, by a volume;
 * else as a copy, made once a pod before anything runs.
 */
import { spawn } from "node:child_process";
import { realpathSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { sourceDirectory } from "../mount-source.js";
import { type Mount, SANDBOX_UID } from "../types.js";
import type { PodHelper } from "./helper.js";
import { mountCopy, type PodMount } from "./pod-spec.js";
import type { KubernetesSettings } from "./settings.js";

export function podMount(mount: Mount, { volumes }: KubernetesSettings): PodMount {
  const source = realpathSync(sourceDirectory(mount));
  for (const { directory, claim, hostPath } of volumes) {
    const subPath = path.relative(directory, source);
    if (subPath.startsWith("..") || path.isAbsolute(subPath)) continue;
    return { target: mount.target, shared: { volume: { claim, hostPath }, subPath } };
  }
  return { target: mount.target };
}

/** Fills what is not shared. Rejects with MORTISE_SANDBOX_SETUP, also when it is more than `maxBytes` together. */
export async function copyMounts(
  relay: PodHelper,
  mounts: readonly Mount[],
  { settings, inPod }: { readonly settings: KubernetesSettings; readonly inPod: readonly PodMount[] },
): Promise<void> {
  let leftBytes = settings.maxCopiedBytes;
  const spend = (bytes: number) => {
    leftBytes -= bytes;
    if (leftBytes < 0)
      throw new Error(
        `mounts hold more than sandbox.kubernetes.maxCopiedBytes (${settings.maxCopiedBytes}); share them by sandbox.kubernetes.volumes`,
      );
  };
  for (const [at, mount] of mounts.entries()) {
    if (inPod[at]!.shared !== undefined) continue;
    try {
      await relay.ask(
        { operation: "put", directory: mountCopy(at), user: SANDBOX_UID },
        { input: archiveOf(sourceDirectory(mount), spend) },
      );
    } catch (cause) {
      throw new MortiseError({
        code: "MORTISE_SANDBOX_SETUP",
        message: `mount at ${mount.target}: ${(cause as Error).message}`,
        cause,
      });
    }
  }
}

/** Streams a directory as tar makes it, hard links as files of their own. */
async function* archiveOf(directory: string, spend: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  const argv = ["--format=pax", "--hard-dereference", "-C", directory, "-c", "."];
  const tar = spawn("tar", argv, { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  tar.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString().slice(0, 600)));
  const ended = new Promise<number | null>((resolve, reject) => {
    tar.once("error", reject);
    tar.once("close", resolve);
  });
  ended.catch(() => undefined);
  try {
    for await (const chunk of tar.stdout as AsyncIterable<Buffer>) {
      spend(chunk.byteLength);
      yield chunk;
    }
    if ((await ended) !== 0) throw new Error(`tar: ${errors.trim()}`);
  } finally {
    tar.kill();
  }
}
