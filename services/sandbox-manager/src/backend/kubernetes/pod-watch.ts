/**
 * Owns what is known of this manager's pods: one watch for all of them, and waiting for one to become what is asked.
 * Does not create or judge them.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type Informer, makeInformer, type V1Pod } from "@kubernetes/client-node";
import type { Cluster } from "./cluster.js";

const RESTART_MS = 500;

/** `undefined` once it is gone, and before it was seen. */
type Look = (pod: V1Pod | undefined) => void;

export class PodWatch {
  readonly #informer: Informer<V1Pod>;
  readonly #known = new Map<string, V1Pod>();
  readonly #waiting = new Map<string, Set<Look>>();
  #isStopped = false;

  /** @param selector labels of this manager's pods, as an API server wants them said */
  constructor({ config, core, namespace }: Cluster, selector: string) {
    this.#informer = makeInformer(
      config,
      `/api/v1/namespaces/${namespace}/pods`,
      () => core.listNamespacedPod({ namespace, labelSelector: selector }),
      selector,
    );
    for (const event of ["add", "update"] as const) this.#informer.on(event, (pod) => this.#seen(pod));
    this.#informer.on("delete", (pod) => this.#gone(pod));
    // A watch ends now and then, and with a server that is restarted.
    this.#informer.on("error", () => void this.#again());
  }

  /** Rejects when the pods cannot be listed. */
  start(): Promise<void> {
    return this.#informer.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#informer.stop();
  }

  get(name: string): V1Pod | undefined {
    return this.#known.get(name);
  }

  /**
   * Waits until `judge` says something about a pod, as often as the pod changes. Resolves with undefined when the time
   * is over; rejects with what `judge` throws.
   * @param signal ends the waiting, as its time does
   */
  async until<T>(
    name: string,
    judge: (pod: V1Pod | undefined) => T | undefined,
    timeoutMs: number,
  ): Promise<T | undefined> {
    const decided = Promise.withResolvers<T | undefined>();
    const look: Look = (pod) => {
      try {
        const verdict = judge(pod);
        if (verdict !== undefined) decided.resolve(verdict);
      } catch (error) {
        decided.reject(error as Error);
      }
    };
    const looks = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, looks.add(look));
    const timer = setTimeout(() => decided.resolve(undefined), timeoutMs);
    try {
      look(this.#known.get(name));
      return await decided.promise;
    } finally {
      clearTimeout(timer);
      looks.delete(look);
      if (looks.size === 0) this.#waiting.delete(name);
    }
  }

  #seen(pod: V1Pod): void {
    const name = pod.metadata!.name!;
    this.#known.set(name, pod);
    for (const look of this.#waiting.get(name) ?? []) look(pod);
  }

  #gone(pod: V1Pod): void {
    const name = pod.metadata!.name!;
    this.#known.delete(name);
    for (const look of this.#waiting.get(name) ?? []) look(undefined);
  }

  async #again(): Promise<void> {
    await delay(RESTART_MS, undefined, { ref: false });
    if (this.#isStopped) return;
    await this.#informer.start().catch(() => this.#again());
  }
}
