/** Owns the tables of TRIALS and REWARDS: transitions, sandbox reports, verdicts. */
import {
  Outcome,
  type Regrade,
  RegradeSchema,
  type SandboxReport,
  SandboxReportSchema,
  TerminationReason,
  TrialState,
  type TrialTransition,
  TrialTransitionSchema,
  type Verdict,
  VerdictSchema,
} from "@mortise/contracts";
import { recordColumn, sequenceColumn, type Table } from "./table.js";

export const TRANSITIONS: Table<TrialTransition> = {
  name: "transitions",
  columns: [
    sequenceColumn(),
    { name: "at_ms", type: "INT64", of: (transition) => transition.atMs },
    { name: "trial", type: "STRING", of: (transition) => transition.trial },
    { name: "group", type: "STRING", of: (transition) => transition.group },
    { name: "slot_in_group", type: "INT32", of: (transition) => transition.slotInGroup },
    { name: "retry", type: "INT32", of: (transition) => transition.retry },
    { name: "task", type: "STRING", of: (transition) => transition.task?.id },
    { name: "evaluation", type: "BOOLEAN", of: (transition) => transition.evaluation },
    { name: "state", type: "STRING", of: (transition) => TrialState[transition.state] },
    { name: "termination", type: "STRING", of: (transition) => TerminationReason[transition.termination] },
    {
      name: "outcome",
      type: "STRING",
      of: ({ outcome }) => (outcome === undefined ? undefined : Outcome[outcome]),
    },
    { name: "reward", type: "DOUBLE", of: (transition) => transition.reward },
    { name: "fence", type: "INT64", of: (transition) => transition.fence },
    recordColumn(TrialTransitionSchema),
  ],
};

export const SANDBOX_REPORTS: Table<SandboxReport> = {
  name: "sandbox_reports",
  columns: [
    sequenceColumn(),
    { name: "trial", type: "STRING", of: (report) => report.trial },
    { name: "fact", type: "STRING", of: (report) => report.fact.case },
    { name: "backend", type: "STRING", of: (report) => report.backend },
    { name: "insecure", type: "BOOLEAN", of: (report) => report.insecure },
    recordColumn(SandboxReportSchema),
  ],
};

export const VERDICTS: Table<Verdict> = {
  name: "verdicts",
  columns: [
    sequenceColumn(),
    { name: "trial", type: "STRING", of: (verdict) => verdict.trial },
    { name: "evaluation", type: "BOOLEAN", of: (verdict) => verdict.evaluation },
    { name: "outcome", type: "STRING", of: (verdict) => Outcome[verdict.outcome] },
    { name: "reward", type: "DOUBLE", of: (verdict) => verdict.reward },
    { name: "grader", type: "STRING", of: (verdict) => verdict.grader },
    recordColumn(VerdictSchema),
  ],
};

export const REGRADES: Table<Regrade> = {
  name: "regrades",
  columns: [
    sequenceColumn(),
    { name: "at_ms", type: "INT64", of: (regrade) => regrade.atMs },
    { name: "trial", type: "STRING", of: (regrade) => regrade.trial },
    { name: "verdict_sequence", type: "INT64", of: (regrade) => regrade.verdictSequence },
    { name: "earlier_outcome", type: "STRING", of: (regrade) => Outcome[regrade.earlierOutcome] },
    {
      name: "outcome",
      type: "STRING",
      of: ({ judged }) => (judged === undefined ? undefined : Outcome[judged.outcome]),
    },
    { name: "reward", type: "DOUBLE", of: ({ judged }) => judged?.reward },
    { name: "grader", type: "STRING", of: ({ judged }) => judged?.grader },
    { name: "author", type: "STRING", of: (regrade) => regrade.author },
    recordColumn(RegradeSchema),
  ],
};
