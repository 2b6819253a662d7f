/**
 * Owns reading what is recorded of a run's trials: from the streams where its bus answers, from its archive where not.
 * Both give the same messages. Does not judge them (trial-facts.ts).
 *
 * H1  Of a trial only its last word counts: the transition that closed it, and the last judgement of its evidence.
 */
import { existsSync } from "node:fs";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { readTurns } from "@mortise/archiver";
import {
  CaptureRecordSchema,
  EvaluationProtocol,
  EvaluationRecordSchema,
  filter,
  type Regrade,
  RegradeSchema,
  type RunConfig,
  RunRecord,
  type SandboxReport,
  SandboxReportSchema,
  type SessionSealed,
  SessionSealedSchema,
  TrialState,
  type TrialTransition,
  TrialTransitionSchema,
  type Turn,
  type Verdict,
  VerdictSchema,
} from "@mortise/contracts";
import { type Bus, parseStrict, readRunConfig } from "@mortise/kernel";
import { runPaths } from "../quickstart/run-directory.js";
import { readAll } from "../records/run-records.js";
import { archivedMessages, type RunPlace, unknownRun, withRunSource } from "../records/run-source.js";
import { projectPaths } from "../site/project-paths.js";

export interface RunHistory {
  readonly run: string;
  readonly source: "streams" | "archive";
  /** Undefined where only an archive is left. */
  readonly config: RunConfig | undefined;
  /** What the run's evaluation was made under; undefined where the run names none. */
  readonly protocol: EvaluationProtocol | undefined;
  /** Attempts each recorded evaluation was to make, by its name; read where there is no configuration. */
  readonly evaluated: ReadonlyMap<string, number>;
  /** The transition that closed each trial, in the order they were closed. */
  readonly closed: readonly TrialTransition[];
  /** By trial. */
  readonly seals: ReadonlyMap<string, SessionSealed>;
  /** By trial; the last judgement of a verdict's evidence stands in its place. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  readonly regraded: ReadonlySet<string>;
  /** The sandbox's last report, by trial. */
  readonly sandboxes: ReadonlyMap<string, SandboxReport>;
  /** Of all sessions, in the order they were captured. */
  readonly turns: readonly Turn[];
}

/** @throws MortiseError MORTISE_OPERATOR_RUN_UNKNOWN when nothing is recorded of the run */
export async function readRunHistory(run: string, place: RunPlace): Promise<RunHistory> {
  return withRunSource(run, place, async ({ records }) => {
    if (records.kind === "bus") return known(await fromStreams(records.bus, run));
    const { run: file } = runPaths(projectPaths(), run);
    return known(
      await fromArchive(records.directory, run, existsSync(file) ? await readRunConfig(file) : undefined),
    );
  });
}

/** @param captures whether turns are wanted; a closed trial's own record has its seal all the same */
export async function fromStreams(
  bus: Bus,
  run: string,
  { captures = true }: { readonly captures?: boolean } = {},
): Promise<RunHistory> {
  const told = new Told();
  if (captures)
    await readAll(bus, "CAPTURES", filter.captures(run), CaptureRecordSchema, ({ record }) => {
      if (record.case === "turn") told.turns.push(record.value);
      if (record.case === "sealed") told.seals.set(record.value.trial, record.value);
    });
  await readAll(bus, "TRIALS", filter.trialStates(run), TrialTransitionSchema, (one) => told.transition(one));
  await readAll(bus, "TRIALS", filter.trialSandboxes(run), SandboxReportSchema, (report) => {
    told.sandboxes.set(report.trial, report);
  });
  await readAll(bus, "REWARDS", filter.rewards(run), VerdictSchema, (verdict) => told.verdict(verdict));
  await readAll(bus, "REWARDS", filter.regrades(run), RegradeSchema, (regrade) => told.regrade(regrade));
  const config = await storedConfig(bus, run);
  return told.history(run, "streams", config, config?.evaluation.protocol);
}

/** @param config as the run file has it, where there is one */
export async function fromArchive(
  directory: string,
  run: string,
  config: RunConfig | undefined,
): Promise<RunHistory> {
  const told = new Told();
  const records = async <D extends DescMessage>(table: string, schema: D): Promise<MessageShape<D>[]> =>
    (await archivedMessages(directory, run, { table, schema })).map(({ message }) => message);
  told.turns.push(...(await readTurns(directory, run)));
  for (const seal of await records("seals", SessionSealedSchema)) told.seals.set(seal.trial, seal);
  for (const one of await records("transitions", TrialTransitionSchema)) told.transition(one);
  for (const report of await records("sandbox_reports", SandboxReportSchema))
    told.sandboxes.set(report.trial, report);
  for (const verdict of await records("verdicts", VerdictSchema)) told.verdict(verdict);
  for (const regrade of await records("regrades", RegradeSchema)) told.regrade(regrade);
  const evaluations = await records("evaluations", EvaluationRecordSchema);
  for (const { name, attempts, invalid } of evaluations) told.evaluated.set(name, attempts + invalid);
  const protocol = evaluations.map((evaluation) => evaluation.protocol).find((text) => text !== "");
  return told.history(
    run,
    "archive",
    config,
    protocol === undefined
      ? config?.evaluation.protocol
      : parseStrict(EvaluationProtocol, JSON.parse(protocol), { source: `archived evaluation of ${run}` }),
  );
}

/** H1 */
class Told {
  readonly turns: Turn[] = [];
  readonly seals = new Map<string, SessionSealed>();
  readonly sandboxes = new Map<string, SandboxReport>();
  readonly evaluated = new Map<string, number>();
  private readonly closed = new Map<string, TrialTransition>();
  private readonly verdicts = new Map<string, Verdict>();
  private readonly regraded = new Set<string>();

  transition(transition: TrialTransition): void {
    if (transition.state === TrialState.CLOSED) this.closed.set(transition.trial, transition);
  }

  verdict(verdict: Verdict): void {
    this.verdicts.set(verdict.trial, verdict);
  }

  regrade({ trial, judged }: Regrade): void {
    if (judged === undefined) return;
    this.verdicts.set(trial, judged);
    this.regraded.add(trial);
  }

  history(
    run: string,
    source: RunHistory["source"],
    config: RunConfig | undefined,
    protocol: EvaluationProtocol | undefined,
  ): RunHistory {
    const { turns, seals, sandboxes, verdicts, regraded, evaluated } = this;
    return {
      run,
      source,
      config,
      protocol,
      closed: [...this.closed.values()],
      ...{ turns, seals, sandboxes, verdicts, regraded, evaluated },
    };
  }
}

async function storedConfig(bus: Bus, run: string): Promise<RunConfig | undefined> {
  const entry = await (await bus.kv("runs")).get(run);
  if (!entry) return undefined;
  const record: unknown = JSON.parse(new TextDecoder().decode(entry.value));
  return parseStrict(RunRecord, record, { source: `KV runs/${run}` }).config;
}

function known(history: RunHistory): RunHistory {
  if (history.closed.length === 0 && history.turns.length === 0) throw unknownRun(history.run);
  return history;
}
