/**
 * Owns how a trial is shown to a learned verifier and what it is asked, as one text (docs/learned-verifier.md). The same
 * trial gives the same text on any machine. Does not tokenise and does not read captures.
 *
 * T1  A verifier is used with the template it was trained on: whoever stores one stores `templateDigest` with it.
 */
import { createHash } from "node:crypto";

/** The two answers; a score is what is left when nothing else may be said. */
export const ANSWERS = { yes: "YES", no: "NO" } as const;

const QUESTION = `Is the task resolved now? Answer ${ANSWERS.yes} or ${ANSWERS.no}.`;

export interface ShownCall {
  readonly name: string;
  /** JSON text of an object as a rule; whatever else was sampled is shown as it is. */
  readonly arguments: string;
}

export type LogEntry =
  | { readonly kind: "reply"; readonly text: string; readonly calls: readonly ShownCall[] }
  /** What a call was answered; what the harness said in the user's place; what fits no role. */
  | { readonly kind: "result" | "user" | "context"; readonly text: string };

export interface TrialLog {
  /** What the agent was asked. */
  readonly task: string;
  /** In the order they were said. */
  readonly entries: readonly LogEntry[];
}

/** @param leftOut entries left out at the beginning of the log, for want of room */
export function judgePrompt({ task, entries }: TrialLog, leftOut = 0): string {
  return [
    "TASK",
    task,
    "LOG",
    ...(leftOut === 0 ? [] : [`(${leftOut} earlier entries left out)`]),
    ...entries.slice(leftOut).map(entryText),
    "QUESTION",
    QUESTION,
  ].join("\n");
}

function entryText(entry: LogEntry): string {
  if (entry.kind !== "reply") return `${entry.kind}: ${entry.text}`;
  const said = entry.text === "" ? [] : [`agent: ${entry.text}`];
  return [...said, ...entry.calls.map(callText)].join("\n") || "agent:";
}

/** Values stand unescaped, a line each: code is read as code. */
function callText({ name, arguments: given }: ShownCall): string {
  const values = objectIn(given);
  if (values === undefined) return `call ${name} ${given}`;
  const lines = Object.entries(values).map(
    ([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return [`call ${name}`, ...lines].join("\n");
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

const SPECIMEN: TrialLog = {
  task: "task",
  entries: [
    { kind: "user", text: "first" },
    { kind: "reply", text: "said", calls: [{ name: "call", arguments: '{"a":"text","b":[1]}' }] },
    { kind: "result", text: "result" },
    { kind: "context", text: "context" },
    { kind: "reply", text: "", calls: [{ name: "call", arguments: "no object" }] },
    { kind: "reply", text: "", calls: [] },
  ],
};

/** Of what the template writes of a specimen with every kind of entry (T1): other words, another digest. */
export const templateDigest = createHash("sha256")
  .update(JSON.stringify([ANSWERS, judgePrompt(SPECIMEN), judgePrompt(SPECIMEN, 1)]))
  .digest("hex");
