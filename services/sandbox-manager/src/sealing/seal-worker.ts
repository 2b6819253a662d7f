/**
 * Owns the thread a root is sealed on: walking and searching block it and nobody else. One root a thread.
 */
import { parentPort, workerData } from "node:worker_threads";
import { ERROR_CATALOGUE, MortiseError } from "@mortise/contracts";
import { seal } from "./seal.js";
import { sealFailed } from "./seal-errors.js";
import type { SealAnswer, SealOrder } from "./seal-root.js";

const { directory, request } = workerData as SealOrder;

async function answer(): Promise<SealAnswer> {
  try {
    return { kind: "sealed", report: await seal(directory, request) };
  } catch (error) {
    const known = error instanceof MortiseError ? error : sealFailed(String(error), { cause: error });
    const { code, fix, detail } = known;
    // The constructor puts the meaning in front, on the other side too.
    const message = known.message.slice(ERROR_CATALOGUE[code].meaning.length + 1);
    return { kind: "refused", error: { code, fix, detail, message } };
  }
}

parentPort!.postMessage(await answer());
