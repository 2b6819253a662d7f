/**
 * Owns what the Kubernetes tests share: a registry and a cluster, started before the first test and gone after the
 * last. Where no cluster can be had, every test is skipped, and the reason is printed.
 */
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { RegistryServer } from "../../services/sandbox-manager/test/images/registry-server.js";
import { Cluster } from "./cluster/cluster.js";
import { putImages, type TestImages } from "./cluster/images.js";
import { findParts } from "./cluster/parts.js";

export interface KubernetesSetup {
  /** Why there is no cluster. */
  readonly absent?: string;
  readonly kubeconfig?: string;
  readonly seccompDirectory?: string;
  readonly images?: TestImages;
}

declare module "vitest" {
  export interface ProvidedContext {
    kubernetes: KubernetesSetup;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const parts = findParts();
  if ("missing" in parts) {
    process.stderr.write(`Kubernetes tests are skipped: ${parts.missing}\n`);
    project.provide("kubernetes", { absent: parts.missing });
    return async () => {};
  }
  const registry = await new RegistryServer().start();
  const images = putImages(registry, parts.helper);
  const cluster = await Cluster.start(parts, images.helper).catch(async (error: unknown) => {
    await registry.stop();
    throw error;
  });
  await cluster.apply(
    fileURLToPath(new URL("../../deploy/kubernetes/sandbox-manager.yaml", import.meta.url)),
  );
  const { kubeconfig, seccompDirectory } = cluster;
  project.provide("kubernetes", { kubeconfig, seccompDirectory, images });
  return async () => {
    await cluster.stop();
    await registry.stop();
  };
}
