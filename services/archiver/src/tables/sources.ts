/**
 * Owns which streams are archived, how their messages decode, which run and table each belongs to, and which
 * contents it refers to. Does not fetch or write anything.
 */
import { createHash } from "node:crypto";
import type { DescMessage, Message } from "@bufbuild/protobuf";
import {
  type CaptureRecord,
  CaptureRecordSchema,
  type Content,
  type GroupRecord,
  GroupRecordSchema,
  type MetricsRecord,
  MetricsRecordSchema,
  type Regrade,
  RegradeSchema,
  type SandboxReport,
  SandboxReportSchema,
  type TrialTransition,
  TrialTransitionSchema,
  type Verdict,
  VerdictSchema,
} from "@mortise/contracts";
import { SEALS, TURNS } from "./captures.js";
import { EVALUATIONS, GROUPS, PHASES, STEPS } from "./runs.js";
import { type Row, row } from "./table.js";
import { REGRADES, SANDBOX_REPORTS, TRANSITIONS, VERDICTS } from "./trials.js";

export interface Placed {
  readonly run: string;
  readonly row: Row;
  /** Contents the message carries or refers to; archived as blobs. */
  readonly contents: readonly Content[];
  /** Objects named without a Content. */
  readonly objects: readonly string[];
}

export interface Source {
  readonly stream: string;
  readonly filter: string;
  readonly schema: (subject: string) => DescMessage;
  /** Undefined for a message of a kind this version does not know. */
  place(message: Message, sequence: bigint): Placed | undefined;
}

function placed(run: string, of: Row, contents: readonly (Content | undefined)[] = [], object = ""): Placed {
  const present = contents.filter((content) => content !== undefined);
  return { run, row: of, contents: present, objects: object === "" ? [] : [object] };
}

function placeCapture({ record }: CaptureRecord, sequence: bigint): Placed | undefined {
  if (record.case === "turn") {
    return placed(record.value.run, row(TURNS, record.value, sequence), [], record.value.routingObject);
  }
  return record.case === "sealed" ? placed(record.value.run, row(SEALS, record.value, sequence)) : undefined;
}

function placeMetrics({ record }: MetricsRecord, sequence: bigint): Placed | undefined {
  switch (record.case) {
    case "step":
      return placed(record.value.run, row(STEPS, record.value, sequence));
    case "evaluation":
      return placed(record.value.run, row(EVALUATIONS, record.value, sequence));
    case "phase":
      return placed(record.value.run, row(PHASES, record.value, sequence));
    default:
      return undefined;
  }
}

function placeTrial(message: TrialTransition | SandboxReport, sequence: bigint): Placed {
  if (message.$typeName === TrialTransitionSchema.typeName) {
    const transition = message as TrialTransition;
    const { patch } = transition;
    const lean = patch === undefined ? transition : { ...transition, patch: byReference(patch) };
    return placed(transition.run, row(TRANSITIONS, lean, sequence), [patch]);
  }
  const report = message as SandboxReport;
  const { fact } = report;
  if (fact.case !== "ended" || fact.value.patch === undefined) {
    return placed(report.run, row(SANDBOX_REPORTS, report, sequence));
  }
  const value = { ...fact.value, patch: byReference(fact.value.patch) };
  const lean: SandboxReport = { ...report, fact: { case: "ended", value } };
  return placed(report.run, row(SANDBOX_REPORTS, lean, sequence), [fact.value.patch]);
}

function placeReward(message: Verdict | Regrade, sequence: bigint): Placed {
  if (message.$typeName === RegradeSchema.typeName) {
    const regrade = message as Regrade;
    return placed(regrade.run, row(REGRADES, regrade, sequence));
  }
  const verdict = message as Verdict;
  const { log, evidence } = verdict;
  const lean: Verdict = {
    ...verdict,
    ...(log === undefined ? {} : { log: byReference(log) }),
    ...(evidence === undefined ? {} : { evidence: byReference(evidence) }),
  };
  return placed(verdict.run, row(VERDICTS, lean, sequence), [log, evidence]);
}

/** A content as the archive records it: its bytes are a blob, so a patch repeated in five records is stored once. */
function byReference(content: Content): Content {
  if (content.place.case !== "inline") return content;
  const digest = createHash("sha256").update(content.place.value).digest("hex");
  return { ...content, place: { case: "object", value: digest }, sha256: digest };
}

function source<M extends Message>(
  stream: string,
  noun: string,
  schema: (subject: string) => DescMessage,
  place: (message: M, sequence: bigint) => Placed | undefined,
): Source {
  return { stream, filter: `mortise.v1.${noun}.>`, schema, place: place as Source["place"] };
}

/** Every archived stream. */
export const SOURCES: readonly Source[] = [
  source<CaptureRecord>("CAPTURES", "capture", () => CaptureRecordSchema, placeCapture),
  source<Verdict | Regrade>(
    "REWARDS",
    "reward",
    (subject) => (subject.endsWith(".regrade") ? RegradeSchema : VerdictSchema),
    placeReward,
  ),
  source<TrialTransition | SandboxReport>(
    "TRIALS",
    "trial",
    (subject) => (subject.endsWith(".sandbox") ? SandboxReportSchema : TrialTransitionSchema),
    placeTrial,
  ),
  source<GroupRecord>(
    "GROUPS",
    "group",
    () => GroupRecordSchema,
    (group, sequence) => placed(group.run, row(GROUPS, group, sequence)),
  ),
  source<MetricsRecord>("METRICS", "metrics", () => MetricsRecordSchema, placeMetrics),
];

/** Names of all tables. */
export const TABLES = [
  TURNS,
  SEALS,
  VERDICTS,
  REGRADES,
  TRANSITIONS,
  SANDBOX_REPORTS,
  GROUPS,
  STEPS,
  EVALUATIONS,
  PHASES,
].map(({ name }) => name);
