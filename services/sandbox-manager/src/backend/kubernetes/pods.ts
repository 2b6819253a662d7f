/**
 * Owns the life of pods at the API server: creating one and waiting until it runs, removing one, and finding what
 * managers that are gone have left. Does not know what runs in them.
 *
 * D1  What carries another owner's mark is not touched, unless it has ended: then its deadline was over, or its node
 *     gave it up, and nobody is left who removes it.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { V1Pod } from "@kubernetes/client-node";
import { MortiseError } from "@mortise/contracts";
import { type Cluster, clusterError, statusOf } from "./cluster.js";
import { LABEL, type PodFacts, podOf, selectorLabels } from "./pod-spec.js";
import { isRunning, whyNotRunning } from "./pod-state.js";
import { PodWatch } from "./pod-watch.js";

/** A server that is busy or being restarted is asked again this often. */
const ATTEMPTS = 4;
const PAUSE_MS = 250;
/** How long an ended pod of somebody else is left for its manager to see. */
const FOREIGN_GRACE_MS = 3_600_000;

export class Pods {
  readonly #cluster: Cluster;
  readonly #owner: string;
  readonly watch: PodWatch;

  constructor(cluster: Cluster, owner: string) {
    this.#cluster = cluster;
    this.#owner = owner;
    this.watch = new PodWatch(cluster, selectorOf(owner));
  }

  /** Rejects with what keeps it from running; then nothing of it remains. */
  async create(facts: PodFacts): Promise<void> {
    const { core, namespace } = this.#cluster;
    await asked(`create pod ${facts.name}`, () =>
      core.createNamespacedPod({ namespace, body: podOf(facts) }),
    );
    const { startTimeoutMs } = facts.settings;
    try {
      if ((await this.watch.until(facts.name, isRunning, startTimeoutMs)) !== undefined) return;
      throw new MortiseError({
        code: "MORTISE_SANDBOX_SETUP",
        message: `pod ${facts.name}: not running within sandbox.kubernetes.startTimeoutMs (${startTimeoutMs}): ${whyNotRunning(this.watch.get(facts.name))}`,
      });
    } catch (error) {
      await this.remove(facts.name);
      throw error;
    }
  }

  /** Resolves once the API server took it; the node ends it at once. Idempotent. */
  async remove(name: string): Promise<void> {
    const { core, namespace } = this.#cluster;
    const body = { gracePeriodSeconds: 1 };
    await asked(`delete pod ${name}`, async () => {
      try {
        await core.deleteNamespacedPod({ name, namespace, body });
      } catch (error) {
        // What is gone already is what was wanted.
        if (statusOf(error) !== 404) throw error;
      }
    });
  }

  /** Removes what an earlier process with this mark left, and ended pods of others (D1); says how many. */
  async sweep(now: number): Promise<number> {
    const left = await leftPods(this.#cluster, this.#owner, now);
    await Promise.all(left.map((pod) => this.remove(pod.metadata!.name!)));
    return left.length;
  }
}

/** Pods that `sweep` would remove. */
export async function leftPods({ core, namespace }: Cluster, owner: string, now: number): Promise<V1Pod[]> {
  const { items } = await asked("list pods", () =>
    core.listNamespacedPod({ namespace, labelSelector: selectorOf(undefined) }),
  );
  return items.filter((pod) => pod.metadata?.labels?.[LABEL.owner] === owner || hasLongEnded(pod, now));
}

function hasLongEnded(pod: V1Pod, now: number): boolean {
  if (pod.status?.phase !== "Failed" && pod.status?.phase !== "Succeeded") return false;
  const ends = (pod.status.containerStatuses ?? []).map(({ state }) => state?.terminated?.finishedAt);
  const times = [pod.metadata?.creationTimestamp, ...ends].map((time) =>
    time === undefined ? 0 : +new Date(time),
  );
  return now - Math.max(...times) > FOREIGN_GRACE_MS;
}

function selectorOf(owner: string | undefined): string {
  const labels = { ...selectorLabels(), ...(owner === undefined ? {} : { [LABEL.owner]: owner }) };
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
}

/** Asks the API server, again when it was not there or had too much to do. Rejects with a MortiseError. */
async function asked<T>(doing: string, ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      const status = statusOf(error);
      const isPassing = status === undefined || status === 429 || status >= 500;
      if (!isPassing || attempt === ATTEMPTS) throw clusterError(doing, error);
      await delay(PAUSE_MS * 2 ** attempt);
    }
  }
}
