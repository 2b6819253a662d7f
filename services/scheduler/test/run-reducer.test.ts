import { create } from "@bufbuild/protobuf";
import {
  ExclusionReason,
  isTaskFault,
  Outcome,
  RunPhase,
  SessionSealedSchema,
  TerminationReason,
} from "@mortise/contracts";
import { describe, expect, it } from "vitest";
import { transitionOf } from "../src/edge/transition.js";
import type { Effect } from "../src/run/effects.js";
import type { RunMessage, TrialFact } from "../src/run/messages.js";
import { runReducer } from "../src/run/reducer.js";
import { launchRoom } from "../src/run/slots.js";
import { initialRunState, type RunState } from "../src/run/state.js";
import type { Trial } from "../src/trial/trial.js";
import { closedCount, SimulatedWorld, testPlan } from "./simulated-world.js";

/** Feeds messages to a fresh run; returns its state and everything it asked. */
function feed(...messages: RunMessage[]): { state: RunState; effects: Effect[]; next: typeof feed } {
  const reduce = runReducer(testPlan());
  let state = initialRunState;
  const effects: Effect[] = [];
  const go = (more: RunMessage[]) => {
    for (const message of more) {
      const step = reduce(state, message);
      state = step.state;
      effects.push(...step.effects);
    }
    return { state, effects, next: (...more: RunMessage[]) => go(more) };
  };
  return go([{ kind: "reconciled" }, ...messages]);
}

type RecordEffect = Extract<Effect, { kind: "record" }>;

const opened = (effects: readonly Effect[]) => effects.filter(({ kind }) => kind === "open").length;
const about = (trial: string, fact: TrialFact): RunMessage => ({ kind: "trial", trial, fact });

describe("launching", () => {
  it("waits while two trials a slot wait for their verdict, and goes on with the next verdict", () => {
    const limits = { slots: 2, warm: 1 };
    const at = (stage: Trial["stage"]) => ({ stage }) as Trial;
    const waiting = [at("verifying"), at("verifying"), at("sealing")];
    expect(launchRoom([...waiting, at("running")], limits)).toBe(2);
    expect(launchRoom([...waiting, at("verifying")], limits)).toBe(0);
  });
});

describe("an evaluation", () => {
  it("waits for an engine to acknowledge the version, but not for ever", () => {
    const waiting = feed({ kind: "weights", version: 0 });
    expect(waiting.state.phase).toBe(RunPhase.EVALUATE_BEFORE);
    expect(opened(waiting.effects)).toBe(0);
    expect(opened(feed({ kind: "weights", version: 0 }, { kind: "receipt", version: 0 }).effects)).toBe(5);
    expect(opened(waiting.next({ kind: "receipt-overdue", version: 0 }).effects)).toBe(5);
  });
});

describe("a trial", () => {
  const grant = { token: "secret", modelAddress: "m", model: "policy", listenerKey: "k" };
  const start: RunMessage[] = [
    { kind: "weights", version: 0 },
    { kind: "receipt", version: 0 },
    about("before-0-0", { kind: "opened", session: "s", proxyAddress: "p", grant }),
    about("before-0-0", { kind: "prepared", address: "a", lease: "l" }),
  ];

  it("takes a slot only once it is prepared, and never puts its token into the state", () => {
    const { state, effects } = feed(...start);
    expect(state.trials.get("before-0-0")?.stage).toBe("running");
    expect(effects.some((effect) => effect.kind === "start-agent" && effect.trial.id === "before-0-0")).toBe(
      true,
    );
    expect(
      JSON.stringify([...state.trials.values()], (_, v) => (typeof v === "bigint" ? `${v}` : v)),
    ).not.toContain("secret");
  });

  it("is sealed before it closes whatever ended it, and repeated in its place after a failure", () => {
    const seal = create(SessionSealedSchema, { sampledTokens: 4n, lowestVersion: 0n });
    const failed: TrialFact = {
      kind: "failed",
      termination: TerminationReason.SANDBOX_LOST,
      reason: "lost",
      stages: [],
    };
    const run = feed(...start, about("before-0-0", failed));
    expect(run.state.trials.get("before-0-0")?.stage).toBe("sealing");
    const { state } = run.next(about("before-0-0", { kind: "sealed", seal, sequence: 9n }));
    expect(state.trials.has("before-0-0")).toBe(false);
    const place = state.groups.get("before")!.places[0]!;
    expect(place.current).toBe("before-0-0r1");
    expect(place.history).toMatchObject([{ standing: "infra", sampledTokens: 4n, sealSequence: 9n }]);
  });

  it("whose task cannot be set up is an invalid task: sealed, not retried, and no fault of the policy", () => {
    const failed: TrialFact = {
      kind: "failed",
      termination: TerminationReason.SETUP_FAILED,
      reason: "MORTISE_SANDBOX_SEAL_ANSWER: found",
      isTaskFault: isTaskFault("MORTISE_SANDBOX_SEAL_ANSWER"),
      stages: [],
    };
    const seal = create(SessionSealedSchema, {});
    const sealing = feed(...start, about("before-0-0", failed));
    const { state, effects } = sealing.next(about("before-0-0", { kind: "sealed", seal, sequence: 9n }));
    const place = state.groups.get("before")!.places[0]!;
    expect(place.current).toBeUndefined();
    expect(place.history).toMatchObject([{ standing: "task", outcome: Outcome.INVALID_TASK }]);
    const records = effects.filter((effect) => effect.kind === "record" && effect.trial.id === "before-0-0");
    const outcomes = records.map((effect) => transitionOf(effect as RecordEffect, 0).outcome);
    // The seal's record says it too: a restart between the two must not launch it again.
    expect(outcomes.slice(-2)).toEqual([Outcome.INVALID_TASK, Outcome.INVALID_TASK]);
  });

  it("whose task is at fault is told from hosts that failed by the error's code", () => {
    for (const what of ["HARNESS_UNFIT", "SANDBOX_SEAL_ANSWER", "SANDBOX_IMAGE_UNKNOWN"])
      expect(isTaskFault(`MORTISE_${what}`)).toBe(true);
    for (const what of ["BUILD", "DIGEST", "INVALID", "UNKNOWN"])
      expect(isTaskFault(`MORTISE_TASK_${what}`)).toBe(true);
    for (const what of [
      "SANDBOX_SETUP",
      "SANDBOX_IMAGE_BUILD",
      "SANDBOX_NOT_CLOSED",
      "TRANSPORT_UNAVAILABLE",
    ])
      expect(isTaskFault(`MORTISE_${what}`)).toBe(false);
    for (const no of ["", "toString", "MORTISE_TASK_NOBODY_KNOWS"]) expect(isTaskFault(no)).toBe(false);
  });
});

describe("the end of a run", () => {
  it("gives every group still open a disposition, and every trial an end", () => {
    const world = new SimulatedWorld({ seed: 5 });
    while (!world.stored.some(({ trial }) => trial.startsWith("g2-"))) world.turn();
    const before = world.groups.length;
    // The last version appears although groups are open: a trainer that needed fewer.
    world.version = world.plan.steps;
    world.send({ kind: "weights", version: world.version });
    world.send({ kind: "receipt", version: world.version });
    world.finish();
    const ended = world.groups.slice(before);
    expect(ended.length).toBeGreaterThan(0);
    for (const { dropReason } of ended) expect(dropReason).toBe(ExclusionReason.RUN_ENDED);
    expect(world.state.groups.size).toBe(0);
    expect(closedCount(world.stored).size).toBe(new Set(world.stored.map(({ trial }) => trial)).size);
    expect(world.phases.at(-1)).toBe(RunPhase.FINISHED);
  });
});
