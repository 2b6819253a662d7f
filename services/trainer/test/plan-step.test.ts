/** What a batch means: advantages, rows, and the accounting of every token, checked with the ledger itself (C5). */
import { create } from "@bufbuild/protobuf";
import { assembleTrial, foldLedger, type LedgerEvent } from "@mortise/capture";
import { ExclusionReason, type GroupRecord, MemberDisposition, StepRecordSchema } from "@mortise/contracts";
import { describe, expect, test } from "vitest";
import type { BatchGroup, Fate } from "../src/step/form-batch.js";
import { type LoadedGroup, planStep, type StepPlan } from "../src/step/plan-step.js";
import { captured, groupRecord, member, RUN, type TrialSketch } from "./support/captured.js";

const rules = { step: 2, staleBound: 1, advantage: { estimator: "grpo", epsilon: 1e-4 } as const };

function loaded(
  group: string,
  sketches: readonly TrialSketch[],
  options: { fate?: Fate; dropReason?: ExclusionReason } = {},
): LoadedGroup {
  const record = groupRecord({
    group,
    members: sketches.map((sketch, slot) => member(sketch, slot)),
    ...(options.dropReason === undefined ? {} : { dropReason: options.dropReason }),
  });
  const batchGroup: BatchGroup = { sequence: 1, record, fate: options.fate ?? "admitted" };
  const isRead = batchGroup.fate === "admitted";
  const trials = sketches.map((sketch) => {
    const { turn, seal } = captured(sketch);
    return [sketch.trial, { assembled: assembleTrial([turn], seal), turns: 1 }] as const;
  });
  return { group: batchGroup, trials: new Map(isRead ? trials : []) };
}

/** Folds seals, groups and the step's own record; throws when a token is lost or counted twice. */
function ledgerOf(groups: readonly LoadedGroup[], sketches: readonly TrialSketch[], plan: StepPlan) {
  const events: LedgerEvent[] = [
    ...sketches.map((sketch): LedgerEvent => ({ kind: "seal", record: captured(sketch).seal })),
    ...groups.map(({ group }): LedgerEvent => ({ kind: "group", record: group.record as GroupRecord })),
    {
      kind: "step",
      record: create(StepRecordSchema, {
        run: RUN,
        step: 2n,
        groups: [...plan.consumedGroups],
        staleGroups: [...plan.staleGroups],
        trials: [...plan.uses],
      }),
    },
  ];
  const { ledger } = foldLedger(events);
  return {
    sampled: Number(ledger.sampled),
    trained: Number(ledger.trained),
    baselineOnly: Number(ledger.baselineOnly),
    unconsumed: Number(ledger.unconsumed),
    excluded: ledger.excluded.map((part) => [part.reason, Number(part.tokens)]),
  };
}

describe("planning a step", () => {
  test("advantages by hand: rewards 1, 0, 0, 1", () => {
    const sketches = [1, 0, 0, 1].map(
      (reward, i): TrialSketch => ({ trial: `a${i}`, reward, versions: [1, 1] }),
    );
    const groups = [loaded("a", sketches)];
    const plan = planStep(groups, rules);
    const size = 0.5 / (Math.sqrt(1 / 3) + 1e-4);
    for (const [i, sign] of [1, -1, -1, 1].entries())
      expect(plan.trials[i]!.advantage).toBeCloseTo(sign * size, 9);
    expect(ledgerOf(groups, sketches, plan)).toEqual({
      sampled: 8,
      trained: 8,
      baselineOnly: 0,
      unconsumed: 0,
      excluded: [],
    });
  });

  test("rejection-sampling fine-tuning imitates successes; failures are baseline only", () => {
    const sketches = [1, 0, 0, 1].map(
      (reward, i): TrialSketch => ({ trial: `a${i}`, reward, versions: [1, 1] }),
    );
    const groups = [loaded("a", sketches)];
    const plan = planStep(groups, { ...rules, advantage: { estimator: "success" } });
    expect(plan.trials.map(({ trial, advantage }) => [trial, advantage])).toEqual([
      ["a0", 1],
      ["a3", 1],
    ]);
    expect(plan.rewards).toEqual([1, 0, 0, 1]);
    expect(ledgerOf(groups, sketches, plan)).toMatchObject({ sampled: 8, trained: 4, baselineOnly: 4 });
  });

  test("a lost trial is neither in the statistics nor in the loss", () => {
    const lost = { trial: "lost", disposition: MemberDisposition.EXCLUDED, exclusion: ExclusionReason.INFRA };
    const sketches: TrialSketch[] = [{ trial: "a", reward: 1 }, { trial: "b", reward: 0 }, lost];
    const groups = [loaded("g", sketches)];
    const plan = planStep(groups, { ...rules, step: 1 });
    expect(plan.trials.map((trial) => trial.trial)).toEqual(["a", "b"]);
    expect(plan.trials[0]!.advantage + plan.trials[1]!.advantage).toBeCloseTo(0, 12);
    expect(ledgerOf(groups, sketches, plan)).toMatchObject({
      sampled: 9,
      trained: 6,
      excluded: [[ExclusionReason.INFRA, 3]],
    });
  });

  test("a baseline-only member shapes the statistics and trains nothing", () => {
    const sketches: TrialSketch[] = [
      { trial: "a", reward: 1 },
      { trial: "b", reward: 0 },
      { trial: "c", reward: 0, disposition: MemberDisposition.BASELINE_ONLY },
    ];
    const groups = [loaded("g", sketches)];
    const plan = planStep(groups, { ...rules, step: 1, advantage: { estimator: "drgrpo" } });
    expect(plan.trials.map((trial) => trial.advantage)).toEqual([1 - 1 / 3, -1 / 3]);
    expect(ledgerOf(groups, sketches, plan)).toMatchObject({ trained: 6, baselineOnly: 3, excluded: [] });
  });

  test("equal rewards: the whole group is excluded, with its reason", () => {
    const sketches: TrialSketch[] = [
      { trial: "a", reward: 0.1 },
      { trial: "b", reward: 0.1 },
    ];
    const groups = [loaded("g", sketches)];
    const plan = planStep(groups, { ...rules, step: 1 });
    expect(plan.trials).toEqual([]);
    expect(ledgerOf(groups, sketches, plan)).toMatchObject({
      trained: 0,
      excluded: [[ExclusionReason.ZERO_VARIANCE, 6]],
    });
  });

  test("dropped and stale groups, and captures that cannot be read, are accounted for beside a good one", () => {
    const good: TrialSketch[] = [
      { trial: "a", reward: 1, versions: [1, 1] },
      { trial: "b", reward: 0, versions: [1, 1] },
    ];
    const dropped: TrialSketch[] = [
      { trial: "c", reward: 0 },
      { trial: "d", reward: 0 },
    ];
    const stale: TrialSketch[] = [
      { trial: "e", reward: 1 },
      { trial: "f", reward: 0 },
    ];
    const broken: TrialSketch[] = [
      { trial: "h", reward: 1 },
      { trial: "i", reward: 0 },
    ];
    const unreadable = loaded("broken", broken);
    const faulty: LoadedGroup = {
      group: unreadable.group,
      trials: new Map([
        ["h", { fault: "MORTISE_CAPTURE_INVALID", turns: 1 }],
        ["i", unreadable.trials.get("i")!],
      ]),
    };
    const groups = [
      loaded("good", good),
      loaded("dropped", dropped, { fate: "dropped", dropReason: ExclusionReason.ZERO_VARIANCE }),
      loaded("stale", stale, { fate: "stale" }),
      faulty,
    ];
    const plan = planStep(groups, rules);
    expect(plan.consumedGroups).toEqual(["good", "dropped", "broken"]);
    expect(plan.staleGroups).toEqual(["stale"]);
    const ledger = ledgerOf(groups, [...good, ...dropped, ...stale, ...broken], plan);
    expect(ledger).toEqual({
      sampled: 22,
      trained: 4,
      baselineOnly: 0,
      unconsumed: 0,
      excluded: [
        [ExclusionReason.INFRA, 3],
        [ExclusionReason.ZERO_VARIANCE, 6],
        [ExclusionReason.TOO_FEW_VALID, 3],
        [ExclusionReason.STALE, 6],
      ],
    });
  });

  test("the bound holds on the tokens themselves, whatever the group record claims", () => {
    const honest: TrialSketch[] = [
      { trial: "a", reward: 1, versions: [1, 0] },
      { trial: "b", reward: 0, versions: [1] },
    ];
    expect(planStep([loaded("g", honest)], { ...rules, step: 2 }).staleGroups).toEqual([]);
    expect(planStep([loaded("g", honest)], { ...rules, step: 3 }).staleGroups).toEqual(["g"]);
  });

  test("staleness is split at the version current when the group was decided", () => {
    const sketches: TrialSketch[] = [
      { trial: "a", reward: 1, versions: [0] },
      { trial: "b", reward: 0, versions: [1] },
    ];
    const plan = planStep([loaded("g", sketches)], rules);
    expect(plan.staleness).toEqual([
      { total: 1, inFlight: 0, inQueue: 1 },
      { total: 0, inFlight: 0, inQueue: 0 },
    ]);
  });
});
