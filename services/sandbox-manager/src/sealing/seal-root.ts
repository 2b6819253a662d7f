/**
 * Owns sealing as the trial pipeline calls it: one root, on a thread of its own, fail closed.
 */
import { Worker } from "node:worker_threads";
import { MortiseError, type MortiseErrorInit } from "@mortise/contracts";
import { sealFailed } from "./seal-errors.js";
import type { SealReport, SealRequest } from "./types.js";

const WORKER_FILE = new URL("./seal-worker.js", import.meta.url);

export interface SealOrder {
  readonly directory: string;
  readonly request: SealRequest;
}

export type SealAnswer =
  | { readonly kind: "sealed"; readonly report: SealReport }
  | { readonly kind: "refused"; readonly error: MortiseErrorInit };

/**
 * Hides the history of the workspace, removes what is left over from other states of its sources, and searches the
 * whole root for the answers. Called once on a template, while no process runs in it; afterwards the root is used by
 * forks as it is.
 *
 * @param directory `Sandbox.hostRoot`
 * @returns the record to store with every trial of the template; equal for equal roots
 * @throws MORTISE_SANDBOX_SEAL when a step could not be done, MORTISE_SANDBOX_SEAL_ANSWER with the report in `detail`
 *   when a probe hits or something could not be searched. After any rejection the root must be removed, not used.
 */
export async function sealRoot(
  directory: string,
  request: SealRequest,
  signal?: AbortSignal,
): Promise<SealReport> {
  signal?.throwIfAborted();
  const order: SealOrder = { directory, request };
  const worker = new Worker(WORKER_FILE, { workerData: order });
  let onAbort = (): void => {};
  try {
    const answer = await new Promise<SealAnswer>((resolve, reject) => {
      worker.on("message", resolve);
      worker.on("error", (cause) => reject(sealFailed("the thread failed", { cause })));
      worker.on("exit", () => reject(sealFailed("the thread ended without an answer")));
      onAbort = () => reject(signal?.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
    if (answer.kind === "sealed") return answer.report;
    throw new MortiseError(answer.error);
  } finally {
    signal?.removeEventListener("abort", onAbort);
    await worker.terminate();
  }
}
