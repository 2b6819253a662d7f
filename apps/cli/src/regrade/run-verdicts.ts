/**
 * Owns what a run's verdicts are read from: the streams while its bus answers, the archive afterwards. Reads everything
 * once; does not judge and writes nothing.
 */
import { createHash } from "node:crypto";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { readBlob } from "@mortise/archiver";
import {
  type Content,
  filter,
  type GroupRecord,
  GroupRecordSchema,
  MetricsRecordSchema,
  MortiseError,
  type Regrade,
  RegradeSchema,
  type SandboxReport,
  SandboxReportSchema,
  type StepRecord,
  StepRecordSchema,
  TrialState,
  type TrialTransition,
  TrialTransitionSchema,
  type Verdict,
  VerdictSchema,
} from "@mortise/contracts";
import type { Bus } from "@mortise/kernel";
import { readAll } from "../records/run-records.js";
import { archivedMessages } from "../records/run-source.js";

/** A message with its sequence on its stream. */
export interface Stored<T> {
  readonly message: T;
  readonly sequence: bigint;
}

export interface RunVerdicts {
  readonly run: string;
  /** By trial; the first counts (a verdict is never replaced). */
  readonly verdicts: ReadonlyMap<string, Stored<Verdict>>;
  /** By trial; the last counts. */
  readonly regrades: ReadonlyMap<string, Stored<Regrade>>;
  /** The last transition of each trial. */
  readonly trials: ReadonlyMap<string, TrialTransition>;
  /** How each trial's sandbox ended. */
  readonly reports: ReadonlyMap<string, SandboxReport>;
  readonly groups: readonly GroupRecord[];
  readonly steps: readonly StepRecord[];
  /** The bytes a message refers to, checked. Throws MORTISE_TRANSPORT_NOT_FOUND. */
  content(content: Content): Promise<Uint8Array>;
}

/** Collects messages in stream order. */
class Collected {
  readonly verdicts = new Map<string, Stored<Verdict>>();
  readonly regrades = new Map<string, Stored<Regrade>>();
  readonly trials = new Map<string, TrialTransition>();
  readonly reports = new Map<string, SandboxReport>();
  readonly groups = new Map<string, GroupRecord>();
  readonly steps = new Map<bigint, StepRecord>();

  verdict(message: Verdict, sequence: bigint): void {
    if (!this.verdicts.has(message.trial)) this.verdicts.set(message.trial, { message, sequence });
  }

  regrade(message: Regrade, sequence: bigint): void {
    this.regrades.set(message.trial, { message, sequence });
  }

  trial(message: TrialTransition): void {
    const isOver = this.trials.get(message.trial)?.state === TrialState.CLOSED;
    if (!isOver) this.trials.set(message.trial, message);
  }

  report(message: SandboxReport): void {
    if (message.fact.case !== "prepared") this.reports.set(message.trial, message);
  }

  done(run: string, content: RunVerdicts["content"]): RunVerdicts {
    const { verdicts, regrades, trials, reports } = this;
    return {
      run,
      verdicts,
      regrades,
      trials,
      reports,
      groups: [...this.groups.values()],
      steps: [...this.steps.values()],
      content,
    };
  }
}

/** Reads only the verdicts of a run and what was judged of them later. */
export async function readRewards(
  bus: Bus,
  run: string,
): Promise<Pick<RunVerdicts, "verdicts" | "regrades">> {
  const found = new Collected();
  await takeRewards(bus, run, found);
  return found;
}

/** Reads a run from the streams. */
export async function readVerdicts(bus: Bus, run: string): Promise<RunVerdicts> {
  const found = new Collected();
  await takeRewards(bus, run, found);
  await readAll(bus, "TRIALS", filter.trialStates(run), TrialTransitionSchema, (transition) =>
    found.trial(transition),
  );
  await readAll(bus, "TRIALS", filter.trialSandboxes(run), SandboxReportSchema, (report) =>
    found.report(report),
  );
  await readAll(bus, "GROUPS", filter.groups(run), GroupRecordSchema, (group) => {
    found.groups.set(group.group, group);
  });
  await readAll(bus, "METRICS", filter.metrics(run), MetricsRecordSchema, ({ record }) => {
    if (record.case === "step") found.steps.set(record.value.step, record.value);
  });
  const objects = await bus.objects("blobs");
  return found.done(run, (content) => checked(content, (name) => objects.get(name)));
}

/** Reads a run from an archive directory. */
export async function readArchivedVerdicts(directory: string, run: string): Promise<RunVerdicts> {
  const found = new Collected();
  const read = async <D extends DescMessage>(
    table: string,
    schema: D,
    take: (message: MessageShape<D>, sequence: bigint) => void,
  ) => {
    for (const { message, sequence } of await archivedMessages(directory, run, { table, schema }))
      take(message, sequence);
  };
  await read("verdicts", VerdictSchema, (verdict, sequence) => found.verdict(verdict, sequence));
  await read("regrades", RegradeSchema, (regrade, sequence) => found.regrade(regrade, sequence));
  await read("transitions", TrialTransitionSchema, (transition) => found.trial(transition));
  await read("sandbox_reports", SandboxReportSchema, (report) => found.report(report));
  await read("groups", GroupRecordSchema, (group) => void found.groups.set(group.group, group));
  await read("steps", StepRecordSchema, (step) => void found.steps.set(step.step, step));
  return found.done(run, (content) => checked(content, (name) => readBlob(directory, run, name)));
}

async function takeRewards(bus: Bus, run: string, found: Collected): Promise<void> {
  await readAll(bus, "REWARDS", filter.rewards(run), VerdictSchema, (verdict, { sequence }) =>
    found.verdict(verdict, BigInt(sequence)),
  );
  await readAll(bus, "REWARDS", filter.regrades(run), RegradeSchema, (regrade, { sequence }) =>
    found.regrade(regrade, BigInt(sequence)),
  );
}

async function checked(
  { place, sha256 }: Content,
  fetch: (name: string) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const bytes =
    place.case === "inline" ? place.value : await fetch(place.case === "object" ? place.value : "");
  const digest = createHash("sha256").update(bytes).digest("hex");
  if (digest === sha256) return bytes;
  throw new MortiseError({
    code: "MORTISE_TRANSPORT_NOT_FOUND",
    message: `Content ${sha256}: what is stored has digest ${digest}.`,
  });
}
