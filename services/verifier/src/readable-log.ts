/** Owns what a person reads of a run: the composed log of a log run, else both outputs of each step. */
import { composedLog } from "./log/composed-log.js";
import type { RunRecord } from "./run/run-record.js";

export function readableLog(run: RunRecord): string {
  if (run.kind === "log") return composedLog(run);
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return run.steps.map(({ stdout, stderr }) => text(stdout) + text(stderr)).join("\n");
}
