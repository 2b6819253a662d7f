/** Owns the tables of GROUPS and METRICS: groups, steps, evaluations, phases. */
import {
  type EvaluationRecord,
  EvaluationRecordSchema,
  ExclusionReason,
  GroupDisposition,
  type GroupRecord,
  GroupRecordSchema,
  type PhaseRecord,
  RunPhase,
  type StepRecord,
  StepRecordSchema,
} from "@mortise/contracts";
import { recordColumn, sequenceColumn, type Table } from "./table.js";

export const GROUPS: Table<GroupRecord> = {
  name: "groups",
  columns: [
    sequenceColumn(),
    { name: "group", type: "STRING", of: (group) => group.group },
    { name: "ordinal", type: "INT64", of: (group) => group.ordinal },
    { name: "epoch", type: "INT32", of: (group) => group.epoch },
    { name: "task", type: "STRING", of: (group) => group.task?.id },
    { name: "disposition", type: "STRING", of: (group) => GroupDisposition[group.disposition] },
    { name: "drop_reason", type: "STRING", of: (group) => ExclusionReason[group.dropReason] },
    { name: "decided_version", type: "INT64", of: (group) => group.decidedVersion },
    recordColumn(GroupRecordSchema),
  ],
};

export const STEPS: Table<StepRecord> = {
  name: "steps",
  columns: [
    sequenceColumn(),
    { name: "step", type: "INT64", of: (step) => step.step },
    { name: "version", type: "INT64", of: (step) => step.version },
    { name: "at_ms", type: "INT64", of: (step) => step.atMs },
    { name: "mean_reward", type: "DOUBLE", of: (step) => step.meanReward },
    { name: "loss", type: "DOUBLE", of: (step) => step.loss },
    recordColumn(StepRecordSchema),
  ],
};

export const EVALUATIONS: Table<EvaluationRecord> = {
  name: "evaluations",
  columns: [
    sequenceColumn(),
    { name: "name", type: "STRING", of: (evaluation) => evaluation.name },
    { name: "version", type: "INT64", of: (evaluation) => evaluation.version },
    { name: "attempts", type: "INT32", of: (evaluation) => evaluation.attempts },
    { name: "solved", type: "INT32", of: (evaluation) => evaluation.solved },
    { name: "invalid", type: "INT32", of: (evaluation) => evaluation.invalid },
    recordColumn(EvaluationRecordSchema),
  ],
};

export const PHASES: Table<PhaseRecord> = {
  name: "phases",
  columns: [
    sequenceColumn(),
    { name: "phase", type: "STRING", of: (phase) => RunPhase[phase.phase] },
    { name: "at_ms", type: "INT64", of: (phase) => phase.atMs },
  ],
};
