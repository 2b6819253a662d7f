/** Owns what is known of the evaluations of this clone without their bus: what was asked, and the result if there is one. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { EvaluationResult } from "./result.js";
import { type EvaluationWish, evaluationPaths } from "./wish.js";

export interface ListedEvaluation {
  readonly runId: string;
  readonly command: EvaluationWish["command"];
  readonly protocol: string;
  /** Finished when every attempt has a verdict that counts, or has spent its retries. */
  readonly state: "finished" | "unfinished";
  /** Of the last result written. */
  readonly attempts?: Pick<EvaluationResult["attempts"], "expected" | "executed" | "resolved" | "open">;
}

/** Undefined for a run that is no evaluation. */
export function listedEvaluation(runId: string): ListedEvaluation | undefined {
  const { wish: file } = evaluationPaths(runId);
  if (!existsSync(file)) return undefined;
  const { command, protocol, out } = JSON.parse(readFileSync(file, "utf8")) as EvaluationWish;
  const listed = { runId, command, protocol: protocol.name };
  const result = join(out, "result.json");
  if (!existsSync(result)) return { ...listed, state: "unfinished" };
  const { attempts } = JSON.parse(readFileSync(result, "utf8")) as EvaluationResult;
  const { expected, executed, resolved, open } = attempts;
  return {
    ...listed,
    state: open === 0 ? "finished" : "unfinished",
    attempts: { expected, executed, resolved, open },
  };
}
