/** Owns the shape of a plan: what the sandbox-manager is asked to run, and what is known before it does. */
import { randomBytes } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { RunOnceRequestSchema, RunStepSchema, TaskRef } from "@mortise/contracts";
import type { AlteredName } from "../counter/alter.js";
import type { RunFacts, RunRecord } from "./run-record.js";

export type Step = MessageInitShape<typeof RunStepSchema>;
type Request = MessageInitShape<typeof RunOnceRequestSchema>;

export interface Plan {
  readonly facts: RunFacts;
  readonly steps: readonly Step[];
  /** What of a change is left out before a sandbox-manager is asked. */
  readonly stripped?: RunRecord["stripped"];
  readonly request: Partial<
    Pick<Exclude<Request, { $typeName: string }>, "filter" | "textPatches" | "mounts" | "withTests">
  >;
}

/** The same again with altered tests: run in a sandbox of its own, and only when the first would be resolved. */
export interface CounterPlan extends Pick<Plan, "steps" | "request"> {
  readonly nonce: string;
  readonly tests: readonly AlteredName[];
}

export interface PlanWish {
  readonly ref: Pick<TaskRef, "id" | "digest">;
  readonly hasChange: boolean;
  /** Of the tests. */
  readonly timeoutMs: number;
}

export function newNonce(): string {
  return randomBytes(16).toString("hex");
}

/** Runs a script the way the kernel would, though it may not be executable where it is mounted. */
export function interpreterOf(script: string): string[] {
  const [, line] = /^#!\s*(\S.*?)\s*(?:\n|$)/.exec(script) ?? [];
  if (line === undefined) return ["/bin/sh"];
  const [program = "/bin/sh", ...rest] = line.split(/\s+/);
  return [program, ...(rest.length === 0 ? [] : [rest.join(" ")])];
}
