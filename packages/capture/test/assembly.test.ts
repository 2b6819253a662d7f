/** Invariants of assembly over random sessions (C1, C4, C5), and single cases that name the rule. */
import { Delivery, ExclusionReason, TurnRelation, TurnRole } from "@mortise/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AssembledTrial, assembleTrial, TurnTree } from "../src/index.js";
import { type Move, moves, SimulatedSession } from "./simulated-session.js";

function play(list: readonly Move[]): SimulatedSession {
  const session = new SimulatedSession();
  for (const move of list) session.play(move);
  return session;
}

function move(kind: Move["kind"], over: Partial<Move> = {}): Move {
  return { kind, agent: 0, from: 0, calls: 1, tokens: 2, isAbandoned: false, role: TurnRole.TRAIN, ...over };
}

function assemble(session: SimulatedSession): AssembledTrial {
  return assembleTrial(
    session.played.map((one) => one.turn),
    session.seal(),
  );
}

function trainedIds(trial: AssembledTrial): number[] {
  return trial.sequences.flatMap((row) => [...row.ids].filter((_, at) => row.mask[at] === 1));
}

describe("assembly of random sessions", () => {
  test("every context in the tree is what the engine was given", () => {
    fc.assert(
      fc.property(moves, (list) => {
        const session = play(list);
        const rebuilt = new TurnTree();
        for (const one of session.played) rebuilt.add(one.turn);
        for (const one of session.played) {
          expect(rebuilt.contextOf(one.turn.turn).join()).toBe(one.seen.join());
          expect(rebuilt.idsOf(one.turn.turn).join()).toBe([...one.seen, ...one.sampled].join());
        }
      }),
    );
  });

  test("each sampled token is trained once behind its own context, or excluded once", () => {
    fc.assert(
      fc.property(moves, (list) => {
        const session = play(list);
        const trial = assemble(session);
        const trained = trainedIds(trial);
        expect(new Set(trained).size).toBe(trained.length);
        const excluded = [...trial.exclusions.values()].reduce((a, b) => a + b, 0);
        expect(trained.length).toBe(trial.trainableTokens);
        expect(trained.length + excluded).toBe(trial.sampledTokens);
        for (const row of trial.sequences) checkRow(session, row);
      }),
      { numRuns: 150 },
    );
  });

  test("order and repetition of the records do not matter", () => {
    fc.assert(
      fc.property(moves, fc.infiniteStream(fc.nat()), (list, picks) => {
        const session = play(list);
        const turns = session.played.map((one) => one.turn);
        const shuffled = [...turns, ...turns]
          .map((turn) => ({ turn, key: picks.next().value as number }))
          .sort((a, b) => a.key - b.key)
          .map((one) => one.turn);
        expect(assembleTrial(shuffled, session.seal())).toEqual(assembleTrial(turns, session.seal()));
      }),
    );
  });
});

/** Every trained token stands behind exactly what the engine was given before it, with its own values. */
function checkRow(session: SimulatedSession, row: AssembledTrial["sequences"][number]): void {
  const wrong: string[] = [];
  for (let at = 0; at < row.ids.length; at++) {
    if (row.mask[at] === 0) continue;
    const id = row.ids[at]!;
    const owner = session.played.find((one) => one.sampled.includes(id))!;
    const before = [...owner.seen, ...owner.sampled.slice(0, owner.sampled.indexOf(id))];
    if (row.ids.subarray(0, at).join() !== before.join()) wrong.push(`context of ${id}`);
    if (Math.abs(row.logProbabilities[at]! + id / 1e6) > 1e-6) wrong.push(`log-probability of ${id}`);
    if (row.versions[at] !== owner.turn.index) wrong.push(`version of ${id}`);
  }
  expect(wrong).toEqual([]);
}

describe("single cases", () => {
  test("a linear session is one row with every sampled token masked in", () => {
    const session = play([move("extend"), move("extend"), move("extend", { from: 1 })]);
    const trial = assemble(session);
    expect(trial.sequences).toHaveLength(1);
    expect(trial.trainableTokens).toBe(trial.sampledTokens);
    expect(session.played.map((one) => one.turn.relation)).toEqual([
      TurnRelation.ROOT,
      TurnRelation.EXTENDS,
      TurnRelation.EXTENDS,
    ]);
  });

  test("arguments respelled and tools renamed by the harness still extend the turn", () => {
    const session = play([move("extend"), move("respell"), move("extend", { from: 1 })]);
    expect(session.played.map((one) => one.turn.parent)).toEqual(["", "t-0", "t-1"]);
  });

  test("parallel results in another order match as a set by id", () => {
    const session = play([move("extend", { calls: 3 }), move("extend"), move("extend", { from: 1 })]);
    expect(session.played[2]!.turn.parent).toBe("t-1");
  });

  test("an adopted partial keeps the ids to the last echoed call and excludes the rest", () => {
    const session = play([move("extend", { calls: 3, tokens: 2 }), move("partial")]);
    const trial = assemble(session);
    expect(session.played[1]!.turn.parent).toBe("t-0");
    expect(trial.exclusions).toEqual(new Map([[ExclusionReason.NOT_ADOPTED, 3]]));
  });

  test("a rejected reply is a leaf of its own and is trained", () => {
    const session = play([move("extend"), move("extend"), move("reject", { from: 1 })]);
    const trial = assemble(session);
    expect(session.played[2]!.turn).toMatchObject({ parent: "t-0", relation: TurnRelation.BRANCH });
    expect(trial.sequences).toHaveLength(2);
    expect(trial.exclusions.size).toBe(0);
  });

  test("asking again after a completed reply samples anew as a retry of the same context", () => {
    const session = play([move("extend"), move("re-ask")]);
    expect(session.played[1]!.turn.relation).toBe(TurnRelation.RETRY);
    expect(assemble(session).sequences).toHaveLength(2);
  });

  test("abandoned replies and excluded roles are counted, not trained", () => {
    const session = play([
      move("extend", { isAbandoned: true, calls: 0 }),
      move("re-ask", { role: TurnRole.EXCLUDED, calls: 0 }),
    ]);
    const trial = assemble(session);
    expect(trial.sequences).toHaveLength(0);
    expect(trial.exclusions).toEqual(
      new Map([
        [ExclusionReason.ABANDONED, 1],
        [ExclusionReason.ROLE, 1],
      ]),
    );
  });

  test("an echoed turn was delivered, whatever the proxy saw", () => {
    const session = play([move("extend", { isAbandoned: true }), move("extend")]);
    expect(session.seal().turns[0]!.delivery).toBe(Delivery.ABANDONED);
    expect(assemble(session).exclusions.size).toBe(0);
  });

  test("missing log-probabilities stay missing (C10)", () => {
    const session = play([move("extend")]);
    session.played[0]!.turn.logProbabilities = new Uint8Array();
    const row = assemble(session).sequences[0]!;
    expect([...row.logProbabilities].every(Number.isNaN)).toBe(true);
  });

  test("a seal that names an unknown turn is refused", () => {
    const session = play([move("extend"), move("extend")]);
    expect(() => assembleTrial([session.played[0]!.turn], session.seal())).toThrow(/sealed but not given/);
  });

  test("spans that leave a token without a version are refused", () => {
    const session = play([move("extend")]);
    session.played[0]!.turn.spans[0]!.length--;
    expect(() => assemble(session)).toThrow(/without a policy version/);
  });
});
