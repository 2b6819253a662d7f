import { create } from "@bufbuild/protobuf";
import { Outcome, SessionSealedSchema, TerminationReason } from "@mortise/contracts";
import { describe, expect, it } from "vitest";
import type { Group } from "../src/group/group.js";
import { nextConsumer, nextPlace, nextToPublish } from "../src/run/publication-order.js";
import { initialRunState, type RunState } from "../src/run/state.js";
import type { Trial, TrialStage } from "../src/trial/trial.js";

const plan = {
  groupsPerStep: 2,
  maxStaleness: 1,
  maxRetries: 2,
  refillDropped: false,
  stragglers: "wait",
} as const;

/** A group of one place: complete with tokens of a version, or with a trial in a stage. */
type Sketch = { readonly done: number } | { readonly stage: TrialStage; readonly launched: number };

/** Groups by ordinal; those not given are decided. */
function runWith(sketches: Readonly<Record<number, Sketch>>, over: Partial<RunState> = {}): RunState {
  const groups = new Map<string, Group>();
  const trials = new Map<string, Trial>();
  const complete = new Set<string>();
  for (const [ordinal, sketch] of Object.entries(sketches)) {
    const id = `g${ordinal}`;
    const common = { task: { id: "t", digest: "d" }, firstTrial: `${id}-0` };
    const history = "done" in sketch ? [closed(`${id}-0`, sketch.done)] : [];
    const place = "done" in sketch ? { ...common, history } : { ...common, history, current: `${id}-0` };
    groups.set(id, { id, isEvaluation: false, ordinal: Number(ordinal), epoch: 0, places: [place] });
    if ("done" in sketch) complete.add(id);
    else trials.set(`${id}-0`, { stage: sketch.stage, launchedVersion: sketch.launched } as Trial);
  }
  const version = over.version ?? 0;
  return { ...initialRunState, groups, trials, complete, acknowledged: version, ...over };
}

function closed(id: string, lowestVersion: number) {
  return {
    id,
    retry: 0,
    standing: "valid",
    termination: TerminationReason.COMPLETED,
    outcome: Outcome.RESOLVED,
    reward: 1,
    sampledTokens: 3n,
    lowestVersion: BigInt(lowestVersion),
    turnSequences: [],
    sealSequence: 1n,
  } as const;
}

const decided = (n: number, version: number) => ({
  version,
  admission: { started: 9, decided: n, dropped: 0, refused: 0 },
});
const next = (state: RunState, over: object = {}) => nextToPublish(state, { ...plan, ...over })?.id;

describe("which complete group is published next", () => {
  it("is any, as long as there are places for all that are due", () => {
    const first = { 0: { stage: "running", launched: 0 }, 1: { stage: "running", launched: 0 } } as const;
    expect(next(runWith({ ...first, 3: { done: 0 } }))).toBe("g3");
    expect(next(runWith(first))).toBeUndefined();
  });

  it("is none that would overtake an older one past its bound", () => {
    // Places 0 to 2 are taken; g3, of version 0, is due before place 4. At place 3 a newer one would send it to step 3.
    const straggler = { 3: { stage: "verifying", launched: 0 }, 4: { done: 1 }, 5: { done: 1 } } as const;
    expect(next(runWith(straggler, decided(3, 1)))).toBeUndefined();
    expect(next(runWith(straggler, decided(3, 1)), { stragglers: "drop" })).toBe("g4");
    expect(next(runWith({ ...straggler, 3: { done: 0 } }, decided(3, 1)))).toBe("g3");
    expect(next(runWith(straggler, decided(2, 1)))).toBe("g4");
  });

  it("goes by what a session was sampled from, as far as that is known", () => {
    const others = { 4: { done: 1 }, 5: { done: 1 } } as const;
    const at = (trial: Sketch) => next(runWith({ 3: trial, ...others }, decided(3, 1)));
    // Launched late, or still to be launched, it is as young as the others.
    expect(at({ stage: "running", launched: 1 })).toBe("g4");
    expect(at({ stage: "queued", launched: 0 })).toBe("g4");
    const lagging = { acknowledged: 0, ...decided(3, 1) };
    expect(next(runWith({ 3: { stage: "queued", launched: 0 }, ...others }, lagging))).toBeUndefined();
    const state = runWith({ 3: { stage: "sealing", launched: 1 }, ...others }, decided(3, 1));
    const seal = create(SessionSealedSchema, { lowestVersion: 0n });
    const trials = new Map([["g3-0", { ...state.trials.get("g3-0")!, seal }]]);
    expect(next({ ...state, trials })).toBeUndefined();
  });

  it("does not wait for what is late wherever it goes, nor when all are complete and not all can be in time", () => {
    const late = { 3: { stage: "running", launched: 0 }, 6: { done: 2 } } as const;
    expect(next(runWith(late, decided(4, 2)))).toBe("g6");
    expect(next(runWith({ 2: { done: 0 }, 3: { done: 0 } }, decided(3, 1)))).toBe("g2");
  });
});

describe("the place of the next group", () => {
  it("counts every decided group, or with refill those that train; its step follows", () => {
    const state = { version: 1, admission: { started: 9, decided: 7, dropped: 2, refused: 1 } };
    expect(nextPlace(state, plan)).toBe(7);
    expect(nextConsumer(state, plan)).toBe(3);
    expect(nextPlace(state, { ...plan, refillDropped: true })).toBe(4);
    expect(nextConsumer({ ...state, version: 5 }, plan)).toBe(5);
  });
});
