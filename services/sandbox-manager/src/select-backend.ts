/**
 * Owns the choice of backend. What is chosen, and why not a better one, is said aloud: nothing is degraded in
 * silence. Does not know how a backend works.
 */
import path from "node:path";
import { BUILT_IN_BACKENDS, MortiseError, type SiteConfig } from "@mortise/contracts";
import type { Log } from "@mortise/kernel";
import { DockerBackend } from "./backend/docker/backend.js";
import { KubernetesBackend } from "./backend/kubernetes/backend.js";
import { loadPlugIn } from "./backend/plug-in.js";
import { ProcessBackend } from "./backend/process/backend.js";
import { RuncBackend } from "./backend/runc/backend.js";
import type { BackendName, SandboxBackend } from "./backend/types.js";
import { DEFAULT_HTTP } from "./images/registry/http.js";
import type { RegistryOptions } from "./images/registry/registry-source.js";

/** A cluster is never guessed: it is used where the site says so. */
const PREFERENCE: readonly BackendName[] = ["runc", "docker", "process"];

/** The configured backend, or the best one of ours this host can run. Rejects with MORTISE_SANDBOX_BACKEND. */
export async function selectBackend(
  site: SiteConfig["sandbox"],
  stateDirectory: string,
  log: Log,
): Promise<SandboxBackend> {
  const wanted = site.backend === "auto" ? PREFERENCE : [site.backend];
  const reasons: string[] = [];
  for (const name of wanted) {
    const backend = await make(name, site, path.join(stateDirectory, name), log);
    const availability = await backend.availability();
    if (availability.ok) {
      log.info({
        event: "sandbox.backend",
        backend: name,
        insecure: backend.isInsecure,
        passedOver: reasons,
      });
      return backend;
    }
    reasons.push(`${name}: ${availability.reason}`);
  }
  throw new MortiseError({
    code: "MORTISE_SANDBOX_BACKEND",
    message: `sandbox.backend: ${reasons.join("; ")}`,
  });
}

function make(
  name: string,
  site: SiteConfig["sandbox"],
  stateDirectory: string,
  log: Log,
): SandboxBackend | Promise<SandboxBackend> {
  if (isBuiltIn(name)) return makeBuiltIn(name, site, stateDirectory, log);
  const { module, options } = site.plugins[name]!;
  const warn = (message: string) => log.warn({ event: "sandbox.plug-in", backend: name, message });
  log.warn({
    event: "sandbox.plug-in",
    backend: name,
    module,
    message: `${module} runs as code of this process, with all its rights`,
  });
  return loadPlugIn(module, { name, stateDirectory, options, warn });
}

function isBuiltIn(name: string): name is BackendName {
  return (BUILT_IN_BACKENDS as readonly string[]).includes(name);
}

function makeBuiltIn(
  name: BackendName,
  site: SiteConfig["sandbox"],
  stateDirectory: string,
  log: Log,
): SandboxBackend {
  const { dockerConfig } = site.images;
  const allowedHosts = { privateHosts: site.privateHosts };
  switch (name) {
    case "runc":
      return new RuncBackend({
        stateDirectory,
        runc: site.runc,
        registry: registryOf(site.images),
        allowedHosts,
      });
    case "docker":
      return new DockerBackend({
        stateDirectory,
        allowedHosts,
        engine: site.docker,
        warn: (message) => log.warn({ event: "sandbox.docker", message }),
        ...(dockerConfig === undefined ? {} : { dockerConfig }),
      });
    case "kubernetes":
      return new KubernetesBackend({
        stateDirectory,
        settings: site.kubernetes,
        registry: registryOf(site.images),
      });
    case "process":
      return new ProcessBackend({
        stateDirectory,
        warn: (message) => log.warn({ event: "sandbox.insecure", message }),
      });
  }
}

/** A registry that asks for more is waited for by each trial, in a stage of its own with a limit of its own. */
const MAX_RETRY_AFTER_MS = 5_000;

/** How registries are asked, as the image store wants it said. */
export function registryOf({
  rewrite,
  dockerConfig,
}: Pick<SiteConfig["sandbox"]["images"], "rewrite" | "dockerConfig">): Partial<RegistryOptions> {
  const http = { ...DEFAULT_HTTP, maxRetryAfterMs: MAX_RETRY_AFTER_MS };
  return { rewrite, http, ...(dockerConfig === undefined ? {} : { dockerConfig }) };
}
