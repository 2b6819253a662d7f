/**
 * Owns the connection to the cluster: which API server, as whom, and what its refusals mean to whoever asked.
 * Does not know pods.
 */
import { existsSync } from "node:fs";
import { ApiException, CoreV1Api, KubeConfig, NetworkingV1Api } from "@kubernetes/client-node";
import { type ErrorCode, MortiseError } from "@mortise/contracts";
import type { KubernetesSettings } from "./settings.js";

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const REASON_CHARACTERS = 600;

export interface Cluster {
  readonly config: KubeConfig;
  readonly core: CoreV1Api;
  readonly networking: NetworkingV1Api;
  readonly namespace: string;
}

/** Throws MORTISE_SANDBOX_BACKEND when no API server is configured. */
export function clusterOf(settings: KubernetesSettings): Cluster {
  const config = new KubeConfig();
  try {
    if (settings.kubeconfig !== undefined) config.loadFromFile(settings.kubeconfig);
    else if (existsSync(SERVICE_ACCOUNT)) config.loadFromCluster();
    else config.loadFromDefault();
    if (settings.context !== undefined) config.setCurrentContext(settings.context);
    if (config.getCurrentCluster() === null) throw new Error("no cluster is configured");
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_SANDBOX_BACKEND",
      message: `sandbox.kubernetes: ${(cause as Error).message}`,
      fix: "Set sandbox.kubernetes.kubeconfig and .context, or run the sandbox-manager as a pod with a service account.",
      cause,
    });
  }
  return {
    config,
    core: config.makeApiClient(CoreV1Api),
    networking: config.makeApiClient(NetworkingV1Api),
    namespace: settings.namespace,
  };
}

/** HTTP status of an API error; undefined when the server did not answer. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof ApiException ? error.code : undefined;
}

/** What the API server said, in its own words. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof ApiException)) {
    const { message, cause } = error as Error;
    return `${message}${cause instanceof Error ? `: ${cause.message}` : ""}`.slice(0, REASON_CHARACTERS);
  }
  const body = typeof error.body === "string" ? parsed(error.body) : error.body;
  const message = (body as { message?: string } | undefined)?.message;
  return (message ?? `HTTP ${error.code}`).slice(0, REASON_CHARACTERS);
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return { message: body };
  }
}

/**
 * An error of the API as the manager's. Who may not do something, or asks for what no cluster accepts, is not helped
 * by another attempt; a quota, a busy or absent server is.
 */
export function clusterError(doing: string, error: unknown): MortiseError {
  if (error instanceof MortiseError) return error;
  const status = statusOf(error);
  const isQuota = status === 403 && /quota/i.test(reasonOf(error));
  const isForGood = status !== undefined && [400, 401, 403, 404, 405, 422].includes(status) && !isQuota;
  const code: ErrorCode = isForGood ? "MORTISE_SANDBOX_BACKEND" : "MORTISE_SANDBOX_SETUP";
  return new MortiseError({
    code,
    message: `kubernetes: ${doing}: ${reasonOf(error)}`,
    ...(isForGood ? { fix: FIXES[status] ?? "Correct sandbox.kubernetes; the reason names the field." } : {}),
    cause: error,
  });
}

const FIXES: Readonly<Record<number, string>> = {
  401: "Renew the credentials of the kubeconfig or service account.",
  403: "Give the manager the role of deploy/kubernetes/sandbox-manager.yaml in sandbox.kubernetes.namespace.",
  404: "Make the namespace sandbox.kubernetes.namespace; deploy/kubernetes/sandbox-manager.yaml has it.",
};
