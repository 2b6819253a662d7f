/**
 * Owns what a changed reward means for what was already made of it. Pure: says, and rewrites nothing. A group that was
 * trained stays trained, an evaluation keeps its record; C5 would not hold if tokens were taken back.
 */
import {
  ExclusionReason,
  GroupDisposition,
  type GroupMember,
  type GroupRecord,
  Outcome,
} from "@mortise/contracts";
import { groupAdvantages } from "@mortise/objectives";
import type { RegradedTrial } from "./regrade-run.js";
import type { RunVerdicts } from "./run-verdicts.js";

export interface Consequence {
  /** Of the group, or of the evaluation's trial. */
  readonly subject: string;
  readonly trials: readonly string[];
  readonly kind: "evaluation" | "trained" | "waiting" | "dropped" | "undecided";
  /** Of a trained group. */
  readonly step?: number;
  /** What the group would be with the rewards that stand now; of decided groups. */
  readonly wouldBe?: "admitted" | "zero-variance" | "too-few-valid";
  /** Largest change of a member's advantage (reward minus the group's mean); of trained groups. */
  readonly maxAdvantageChange?: number;
  readonly sentence: string;
}

/** @param regraded all trials that were judged again, changed or not */
export function consequencesOf(run: RunVerdicts, regraded: readonly RegradedTrial[]): Consequence[] {
  const changed = new Map(regraded.filter(({ isChanged }) => isChanged).map((trial) => [trial.trial, trial]));
  const placed = new Set<string>();
  const consequences: Consequence[] = [];
  for (const group of run.groups) {
    const trials = group.members.map(({ trial }) => trial).filter((trial) => changed.has(trial));
    for (const trial of trials) placed.add(trial);
    if (trials.length > 0) consequences.push(ofGroup(run, group, trials, changed));
  }
  for (const [trial, { after }] of changed) {
    if (placed.has(trial)) continue;
    consequences.push(
      after.evaluation
        ? {
            subject: trial,
            trials: [trial],
            kind: "evaluation",
            sentence: `${trial} counts in an evaluation, whose record keeps its count`,
          }
        : {
            subject: trial,
            trials: [trial],
            kind: "undecided",
            sentence: `${trial} is in no decided group; the scheduler goes by its first verdict`,
          },
    );
  }
  return consequences;
}

interface Vote {
  readonly reward: number;
  readonly isValid: boolean;
}

function ofGroup(
  run: RunVerdicts,
  group: GroupRecord,
  trials: readonly string[],
  changed: ReadonlyMap<string, RegradedTrial>,
): Consequence {
  const then = group.members.map(voteOf);
  const now = group.members.map((member) => voteNow(member, changed.get(member.trial)));
  const advantages = groupAdvantages(now, { estimator: "drgrpo" });
  const wouldBe: Consequence["wouldBe"] & string = advantages.dropped ?? "admitted";
  const base = { subject: group.group, trials, wouldBe };
  const would = wouldBe === "admitted" ? "would be admitted" : `would be dropped (${wouldBe})`;
  if (group.disposition === GroupDisposition.DROPPED) {
    const reason = ExclusionReason[group.dropReason].toLowerCase().replaceAll("_", "-");
    return {
      ...base,
      kind: "dropped",
      sentence: `group ${group.group} was dropped (${reason}) and stays so; by the rewards of today it ${would}`,
    };
  }
  const step = run.steps.find(({ groups }) => groups.includes(group.group));
  if (step === undefined)
    return {
      ...base,
      kind: "waiting",
      sentence: `group ${group.group} is admitted and waits for a step, which goes by its record's rewards; by those of today it ${would}`,
    };
  const was = groupAdvantages(then, { estimator: "drgrpo" }).advantages;
  const maxAdvantageChange = Math.max(
    ...was.map((value, at) => Math.abs(value - advantages.advantages[at]!)),
  );
  return {
    ...base,
    kind: "trained",
    step: Number(step.step),
    maxAdvantageChange,
    sentence: `group ${group.group} was trained in step ${step.step} by its earlier rewards, and stays so; by those of today it ${would}${
      wouldBe === "admitted" ? `, an advantage differs by up to ${maxAdvantageChange.toFixed(3)}` : ""
    }`,
  };
}

function voteOf({ reward, exclusion }: GroupMember): Vote {
  const isValid = exclusion === ExclusionReason.UNSPECIFIED && reward !== undefined;
  return { reward: reward ?? Number.NaN, isValid };
}

/** Of a dropped group no member is excluded by itself: the drop's reason stands in each. */
function voteNow(member: GroupMember, regraded: RegradedTrial | undefined): Vote {
  if (regraded === undefined) {
    const isValid = member.reward !== undefined && !isItsOwn(member.exclusion);
    return { reward: member.reward ?? Number.NaN, isValid };
  }
  const { outcome, reward } = regraded.after;
  const isValid = outcome === Outcome.RESOLVED || outcome === Outcome.UNRESOLVED;
  return {
    reward: reward ?? Number.NaN,
    isValid: isValid && reward !== undefined && !isPast(member.exclusion),
  };
}

const PAST: ReadonlySet<ExclusionReason> = new Set([ExclusionReason.STALE, ExclusionReason.CANCELLED]);
const OWN: ReadonlySet<ExclusionReason> = new Set([
  ...PAST,
  ExclusionReason.INFRA,
  ExclusionReason.TAMPER,
  ExclusionReason.TASK,
]);

function isItsOwn(exclusion: ExclusionReason): boolean {
  return OWN.has(exclusion);
}

/** Excluded for a reason that no grade can change. */
function isPast(exclusion: ExclusionReason): boolean {
  return PAST.has(exclusion);
}
