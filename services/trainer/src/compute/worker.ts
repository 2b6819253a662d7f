/**
 * Owns the compute thread's side of the conversation: one request at a time, answered with the CPU time this
 * thread has spent. All heavy work happens here, so that the service's heartbeats and rpc go on.
 */
import { parentPort, workerData } from "node:worker_threads";
import { ERROR_CATALOGUE, MortiseError } from "@mortise/contracts";
import type { ComputeSetup, FromWorker, PlainError, Request, ToWorker } from "./messages.js";
import { Workbench } from "./workbench.js";

const port = parentPort!;
const say = (message: FromWorker): void => port.postMessage(message);

/** CPU of this thread since it began, milliseconds. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function plain(error: unknown): PlainError {
  if (!(error instanceof Error)) return { message: String(error) };
  const stack = error.stack ?? error.message;
  if (!(error instanceof MortiseError)) return { message: error.message, stack };
  // The class puts the meaning of the code before the message; it will do so again on the other side.
  const { code, fix } = error;
  return { code, fix, message: error.message.slice(ERROR_CATALOGUE[code].meaning.length + 1), stack };
}

async function answer(bench: Workbench, request: Request): Promise<unknown> {
  switch (request.kind) {
    case "initial":
      return bench.initial();
    case "warm-start":
      return bench.warmStart(request.task, (progress) => say({ kind: "progress", progress, cpuMs: cpuMs() }));
    case "load":
      return bench.load(request.task);
    case "step":
      return await bench.step(request.task);
  }
}

const opened = Workbench.open(workerData as ComputeSetup, (reason) =>
  say({ kind: "independent-absent", reason }),
);
// The first request awaits the same promise and reports its failure; this only says that it is there.
opened.then(
  ({ model }) => say({ kind: "ready", backend: model.backend, parameters: model.parameterCount }),
  (error: unknown) => say({ kind: "failed", id: 0, error: plain(error), cpuMs: cpuMs() }),
);

port.on("message", async ({ id, request }: ToWorker) => {
  try {
    const value = await answer(await opened, request);
    say({ kind: "answer", id, value, cpuMs: cpuMs() });
  } catch (error) {
    say({ kind: "failed", id, error: plain(error), cpuMs: cpuMs() });
  }
});
