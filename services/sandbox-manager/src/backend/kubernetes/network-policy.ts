/**
 * Owns the NetworkPolicy that denies the pods everything. It is a second wall, for the moment before a pod's network is
 * taken down and for clusters whose network heeds it; nothing is concluded from it: what counts is the proof.
 */
import type { V1NetworkPolicy } from "@kubernetes/client-node";
import { type Cluster, clusterError, statusOf } from "./cluster.js";
import { selectorLabels } from "./pod-spec.js";

/** Makes it where it is not. Rejects with MORTISE_SANDBOX_BACKEND where the manager may not. */
export async function ensurePolicy({ networking, namespace }: Cluster, namePrefix: string): Promise<void> {
  const body: V1NetworkPolicy = {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: `${namePrefix}-deny-all`, labels: selectorLabels() },
    spec: { podSelector: { matchLabels: selectorLabels() }, policyTypes: ["Ingress", "Egress"] },
  };
  try {
    await networking.createNamespacedNetworkPolicy({ namespace, body });
  } catch (error) {
    if (statusOf(error) !== 409) throw clusterError(`create network policy ${namePrefix}-deny-all`, error);
  }
}
