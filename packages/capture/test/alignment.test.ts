/** Properties of the aligner over random sessions (C4 to C6), and of the ledger over what they give (C5). */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  ExclusionReason,
  GroupDisposition,
  GroupRecordSchema,
  MemberDisposition,
  StepRecordSchema,
  TurnRelation,
  TurnRole,
  TurnSchema,
} from "@mortise/contracts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Alignment, assembleTrial, foldLedger, TurnTree } from "../src/index.js";
import { moves, SimulatedSession } from "./simulated-session.js";

/** Rebuilds a tree at every call of a hundred sessions: slow where the machine is busy. */
const PATIENCE_MS = 180_000;

/** An alignment without the records it points to. */
function conclusion({ parent, ...rest }: Alignment) {
  return { ...rest, parent: parent?.turn };
}

test(
  "a tree that is rebuilt from the journal aligns every call as the one that saw them all",
  () => {
    fc.assert(
      fc.property(moves, (list) => {
        const session = new SimulatedSession();
        session.onCall = (call, at) => {
          const rebuilt = new TurnTree();
          for (const { turn } of session.played)
            rebuilt.add(fromBinary(TurnSchema, toBinary(TurnSchema, turn)));
          expect(conclusion(session.align(rebuilt, call))).toEqual(conclusion(at));
        };
        for (const move of list) session.play(move);
      }),
    );
  },
  PATIENCE_MS,
);

test("parents are of the same agent, earlier, and extended first by one turn alone", () => {
  fc.assert(
    fc.property(moves, (list) => {
      const session = new SimulatedSession();
      for (const move of list) session.play(move);
      const turns = new Map(session.played.map(({ turn }) => [turn.turn, turn]));
      const first = new Set<string>();
      for (const { turn } of session.played) {
        const parent = turns.get(turn.parent);
        if (parent) {
          expect(parent.thread).toBe(turn.thread);
          expect(parent.index).toBeLessThan(turn.index);
          expect(parent.toolsDigest).toEqual(turn.toolsDigest);
        }
        if (turn.relation === TurnRelation.ROOT) expect(turn.parent).toBe("");
        if (turn.relation === TurnRelation.RETRY)
          expect(turns.get(turn.retryOf)!.bodyDigest).toEqual(turn.bodyDigest);
        if (turn.relation !== TurnRelation.EXTENDS) continue;
        expect(first.has(turn.follows)).toBe(false);
        first.add(turn.follows);
      }
    }),
  );
});

test("every agent is one thread, with one root", () => {
  fc.assert(
    fc.property(moves, (list) => {
      const session = new SimulatedSession();
      for (const move of list) session.play(move);
      const turns = session.played.map(({ turn }) => turn);
      for (const agent of new Set(turns.map((turn) => turn.agent))) {
        const own = turns.filter((turn) => turn.agent === agent);
        expect(new Set(own.map((turn) => turn.thread)).size).toBe(1);
        expect(own.filter((turn) => turn.relation === TurnRelation.ROOT)).toHaveLength(1);
        expect(own[0]!.relation).toBe(TurnRelation.ROOT);
      }
    }),
  );
});

test("the ledger balances over what the assembled trials account for", () => {
  fc.assert(
    fc.property(moves, (list) => {
      const session = new SimulatedSession();
      for (const move of list) session.play(move);
      const seal = session.seal();
      const trial = assembleTrial(
        session.played.map(({ turn }) => turn),
        seal,
      );
      const member = {
        trial: "t",
        sampledTokens: seal.sampledTokens,
        sealSequence: seal.lastSequence,
        disposition: MemberDisposition.TRAIN,
      };
      const group = create(GroupRecordSchema, {
        run: "r",
        group: "g",
        disposition: GroupDisposition.ADMITTED,
        members: [member],
      });
      const step = create(StepRecordSchema, {
        run: "r",
        step: 1n,
        groups: ["g"],
        trials: [
          {
            trial: "t",
            trainedTokens: BigInt(trial.trainableTokens),
            excluded: [...trial.exclusions].map(([reason, tokens]) => ({ reason, tokens: BigInt(tokens) })),
          },
        ],
      });
      const { ledger } = foldLedger([
        { kind: "seal", record: seal },
        { kind: "group", record: group },
        { kind: "step", record: step },
      ]);
      const excluded = ledger.excluded.reduce((sum, part) => sum + part.tokens, 0n);
      expect(ledger.trained + excluded).toBe(seal.sampledTokens);
      const isExcludable = (reason: ExclusionReason) =>
        [ExclusionReason.ROLE, ExclusionReason.NOT_ADOPTED, ExclusionReason.ABANDONED].includes(reason);
      expect(ledger.excluded.every(({ reason }) => isExcludable(reason))).toBe(true);
    }),
  );
});

test("a turn whose text alone came back keeps the ids up to its first call", () => {
  const session = new SimulatedSession();
  const move = { agent: 0, from: 0, calls: 2, tokens: 3, isAbandoned: true, role: TurnRole.TRAIN } as const;
  session.play({ ...move, kind: "extend" });
  session.play({ ...move, kind: "text-only", isAbandoned: false });
  const [first, second] = session.played;
  expect(second!.turn).toMatchObject({
    parent: "t-0",
    relation: TurnRelation.EXTENDS,
    flags: ["adopted-partial"],
  });
  expect(second!.turn.prefixLength).toBe(first!.seen.length + 1);
});
