/** The integrity report, and what a changed reward means, of records made here. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  ExclusionReason,
  GroupDisposition,
  GroupRecordSchema,
  Outcome,
  SandboxReportSchema,
  StepRecordSchema,
  TerminationReason,
  TrialState,
  TrialTransitionSchema,
  VerdictSchema,
} from "@mortise/contracts";
import { expect, test } from "vitest";
import { integrityLines, integrityOf } from "../src/integrity/integrity-report.js";
import { consequencesOf } from "../src/regrade/reconcile.js";
import type { RegradedTrial } from "../src/regrade/regrade-run.js";
import type { RunVerdicts } from "../src/regrade/run-verdicts.js";

type VerdictInit = MessageInitShape<typeof VerdictSchema>;
type ReportInit = MessageInitShape<typeof SandboxReportSchema>;
interface Told {
  readonly verdict?: VerdictInit;
  readonly report?: ReportInit;
}

const content = () => Promise.reject(new Error("nothing is fetched here"));
const ended = (changes: object = {}) => ({
  case: "ended" as const,
  value: { termination: TerminationReason.COMPLETED, ...changes },
});
const proof = { seal: { sha256: "a" }, network: { sha256: "b" } };

function runOf(told: Readonly<Record<string, Told>>, more: Partial<RunVerdicts> = {}): RunVerdicts {
  const entries = Object.entries(told);
  const trials = entries.map(([trial]) => {
    const transition = { trial, task: { id: `task-of-${trial}` }, state: TrialState.CLOSED };
    return [trial, create(TrialTransitionSchema, transition)] as const;
  });
  return {
    run: "r",
    verdicts: new Map(
      entries.flatMap(([trial, { verdict }], at) =>
        verdict === undefined
          ? []
          : [
              [
                trial,
                { message: create(VerdictSchema, { trial, ...verdict } as never), sequence: BigInt(at + 1) },
              ],
            ],
      ),
    ),
    regrades: new Map(),
    trials: new Map(trials),
    reports: new Map(
      entries.map(([trial, { report }]) => [
        trial,
        create(SandboxReportSchema, { trial, ...report } as never),
      ]),
    ),
    groups: [],
    steps: [],
    content,
    ...more,
  };
}

const modeOf = (run: RunVerdicts, name: string) => integrityOf(run).modes.find(({ mode }) => mode === name)!;

test("each sign is counted under its mode, with how the trial ended; honest trials show none", () => {
  const resolved = { outcome: Outcome.RESOLVED, reward: 1 };
  const run = runOf({
    honest: {
      verdict: resolved,
      report: { proof, fact: ended({ deniedEgress: 0n, leftOut: { "git-metadata": 8 } }) },
    },
    fetches: {
      verdict: { outcome: Outcome.UNRESOLVED, reward: 0 },
      report: { proof, fact: ended({ deniedEgress: 7n }) },
    },
    configures: {
      verdict: { ...resolved, stripped: [{ subject: "setup.cfg", detail: "configures the tests" }] },
      report: { proof, fact: ended({ leftOut: { "symlink-leaves-workspace": 2 } }) },
    },
    forges: {
      verdict: {
        ...{ outcome: Outcome.INVALID_TAMPER, conclusive: true, reason: "forged" },
        findings: [{ subject: "canary-flipped", detail: "passed" }],
      },
      report: { proof, fact: ended() },
    },
    leaks: {
      report: {
        fact: { case: "failed", value: { code: "MORTISE_SANDBOX_SEAL_ANSWER", reason: "probe 1 is in /x" } },
      },
    },
  });
  const report = integrityOf(run);
  expect(report).toMatchObject({
    trials: 5,
    verdicts: { resolved: 2, unresolved: 1, "invalid(tamper)": 1 },
    protection: { ran: 4, sealed: 4, probed: 4 },
    tampered: [{ trial: "forges", task: "task-of-forges", isConclusive: true }],
  });
  expect(modeOf(run, "network")).toMatchObject({ trials: 1, incidence: 0.25, outcomes: { unresolved: 1 } });
  expect(modeOf(run, "test-configuration")).toMatchObject({ trials: 1, resolved: ["configures"] });
  expect(modeOf(run, "outside-workspace")).toMatchObject({ trials: 1 });
  expect(modeOf(run, "canary-flipped")).toMatchObject({ trials: 1, outcomes: { "invalid(tamper)": 1 } });
  expect(modeOf(run, "answers-inside")).toMatchObject({ trials: 1, incidence: 0.2 });
  expect(report.modes.flatMap(({ examples }) => examples).map(({ trial }) => trial)).not.toContain("honest");
  expect(integrityLines(report).at(-1)).toBe("look at configures: resolved, with signs of outside-workspace");
});

test("what was never measured has no incidence", () => {
  expect(modeOf(runOf({}), "network")).toMatchObject({ trials: 0, incidence: null });
});

const regraded = (trial: string, before: number, after: VerdictInit): RegradedTrial => ({
  ...{ trial, task: "t", isChanged: true, isRefined: false, evidenceSha256: "" },
  before: create(VerdictSchema, {
    trial,
    outcome: before === 1 ? Outcome.RESOLVED : Outcome.UNRESOLVED,
    reward: before,
  }),
  after: create(VerdictSchema, { trial, ...after } as never),
});
const member = (trial: string, reward: number, exclusion = ExclusionReason.UNSPECIFIED) => ({
  trial,
  reward,
  exclusion,
});
const group = (name: string, more: MessageInitShape<typeof GroupRecordSchema>) =>
  create(GroupRecordSchema, { group: name, disposition: GroupDisposition.ADMITTED, ...more } as never);

test("a trained group says what it would be by the rewards of today", () => {
  const groups = [group("g", { members: [member("a", 0), member("b", 1)] })];
  const steps = [create(StepRecordSchema, { step: 4n, groups: ["g"] })];
  const changed = [regraded("a", 0, { outcome: Outcome.RESOLVED, reward: 1 })];
  expect(consequencesOf(runOf({}, { groups, steps }), changed)).toMatchObject([
    { subject: "g", kind: "trained", step: 4, wouldBe: "zero-variance", maxAdvantageChange: 0.5 },
  ]);
});

test("a dropped group would be admitted, one that waits is said to wait, an evaluation keeps its count", () => {
  const zero = ExclusionReason.ZERO_VARIANCE;
  const dropped = group("d", {
    ...{ disposition: GroupDisposition.DROPPED, dropReason: zero },
    members: [member("a", 0, zero), member("b", 0, zero)],
  });
  const waiting = group("w", { members: [member("c", 0), member("e", 1)] });
  const tampered = { outcome: Outcome.INVALID_TAMPER };
  const consequences = consequencesOf(runOf({}, { groups: [dropped, waiting] }), [
    regraded("a", 0, { outcome: Outcome.RESOLVED, reward: 1 }),
    regraded("e", 1, tampered),
    regraded("x", 0, { outcome: Outcome.RESOLVED, reward: 1, evaluation: true }),
  ]);
  expect(consequences).toMatchObject([
    { subject: "d", kind: "dropped", wouldBe: "admitted" },
    { subject: "w", kind: "waiting", wouldBe: "too-few-valid" },
    { subject: "x", kind: "evaluation" },
  ]);
});
