/** What the conformance run must notice: a record that says anything else than what the engine was given. */
import { create } from "@bufbuild/protobuf";
import { packIds, packLogProbabilities } from "@mortise/capture";
import {
  Delivery,
  FinishReason,
  SessionSealedSchema,
  TurnRelation,
  TurnRole,
  TurnSchema,
} from "@mortise/contracts";
import { expect, test } from "vitest";
import { account } from "../../src/conformance/accounting.js";
import type { Played } from "../../src/conformance/played-policy.js";

const CONTEXT = [1, 2, 3];
const SAMPLED = [4, 5];

function turnOf(index: number, context: readonly number[], sampled: readonly number[]) {
  return create(TurnSchema, {
    run: "r",
    trial: "t",
    session: "t",
    thread: `thread-${index}`,
    turn: `t-t${index}`,
    index,
    relation: TurnRelation.ROOT,
    role: TurnRole.TRAIN,
    suffixIds: packIds(Int32Array.from(context)),
    sampledIds: packIds(Int32Array.from(sampled)),
    logProbabilities: packLogProbabilities(Float32Array.from(sampled, () => -0.5)),
    spans: [{ start: 0, length: sampled.length, policyVersion: 0n }],
    finish: FinishReason.STOP,
  });
}

function sealOf(sampled: number, turns = 1) {
  return create(SessionSealedSchema, {
    run: "r",
    trial: "t",
    session: "t",
    sampledTokens: BigInt(sampled * turns),
    lastSequence: BigInt(turns),
    turns: Array.from({ length: turns }, (_, at) => ({
      turn: `t-t${at}`,
      sequence: BigInt(at + 1),
      sampledTokens: sampled,
      delivery: Delivery.DELIVERED,
    })),
  });
}

function playedOf(turnIndex: number, context: readonly number[], ids: readonly number[]): Played {
  const request = { turnIndex, contextIds: Int32Array.from(context) } as unknown as Played["request"];
  return { request, reply: { ids }, kind: "main", fault: undefined, isFailure: false };
}

const good = {
  turns: [turnOf(0, CONTEXT, SAMPLED)],
  seal: sealOf(2),
  played: [playedOf(0, CONTEXT, SAMPLED)],
};

test("a record of exactly what happened has no problem", () => {
  expect(account(good.turns, good.seal, good.played).problems).toEqual([]);
});

test.each([
  ["another context", [turnOf(0, [1, 2, 9], SAMPLED)], good.seal, /turn 0 is not captured under the ids/],
  ["a shorter context", [turnOf(0, [1, 2], SAMPLED)], good.seal, /turn 0 is not captured under the ids/],
  ["other sampled ids", [turnOf(0, CONTEXT, [4, 6])], good.seal, /turn 0 has other ids/],
  ["a missing turn", [], sealOf(2, 0), /asked for turn 0, which is not captured/],
  [
    "a turn nobody sampled",
    [turnOf(0, CONTEXT, SAMPLED), turnOf(1, CONTEXT, SAMPLED)],
    sealOf(2, 2),
    /turn 1 was captured, but no engine was asked/,
  ],
  [
    "a seal with another count",
    good.turns,
    { ...sealOf(2), sampledTokens: 3n },
    /sampled 3 tokens, its step accounts for 2/,
  ],
])("%s is a problem", (_, turns, seal, problem) => {
  expect(account(turns, seal, good.played).problems.join("\n")).toMatch(problem);
});

test("a call that failed on purpose needs no turn", () => {
  const failed: Played = { ...playedOf(1, CONTEXT, SAMPLED), isFailure: true };
  expect(account(good.turns, good.seal, [...good.played, failed]).problems).toEqual([]);
});
