/** The ledger balances for every order and repetition of records, and refuses what does not add up (C5). */
import { create } from "@bufbuild/protobuf";
import {
  ExclusionReason,
  GroupDisposition,
  GroupRecordSchema,
  MemberDisposition,
  SessionSealedSchema,
  StepRecordSchema,
} from "@mortise/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { foldLedger, type LedgerEvent } from "../src/index.js";

const seal = (trial: string, tokens: number, evaluation = false): LedgerEvent => ({
  kind: "seal",
  record: create(SessionSealedSchema, { run: "r", trial, sampledTokens: BigInt(tokens), evaluation }),
});

interface Member {
  trial: string;
  tokens: number;
  disposition: MemberDisposition;
  exclusion?: ExclusionReason;
}

function group(name: string, members: Member[], dropReason?: ExclusionReason): LedgerEvent {
  return {
    kind: "group",
    record: create(GroupRecordSchema, {
      run: "r",
      group: name,
      disposition: dropReason === undefined ? GroupDisposition.ADMITTED : GroupDisposition.DROPPED,
      dropReason: dropReason ?? ExclusionReason.UNSPECIFIED,
      members: members.map((m) => ({
        trial: m.trial,
        sampledTokens: BigInt(m.tokens),
        disposition: m.disposition,
        exclusion: m.exclusion ?? ExclusionReason.UNSPECIFIED,
      })),
    }),
  };
}

function step(
  n: number,
  groups: string[],
  uses: { trial: string; trained: number; notAdopted?: number }[],
): LedgerEvent {
  return {
    kind: "step",
    record: create(StepRecordSchema, {
      run: "r",
      step: BigInt(n),
      groups,
      trials: uses.map((use) => ({
        trial: use.trial,
        trainedTokens: BigInt(use.trained),
        excluded: use.notAdopted
          ? [{ reason: ExclusionReason.NOT_ADOPTED, tokens: BigInt(use.notAdopted) }]
          : [],
      })),
    }),
  };
}

const TRAIN = MemberDisposition.TRAIN;

/** A run of groups with every fate a group can have, as events with the totals they must give. */
const runs = fc
  .array(
    fc.record({
      fate: fc.constantFrom("trained", "waiting", "dropped", "stale", "ungrouped"),
      tokens: fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 1, maxLength: 4 }),
      infra: fc.integer({ min: 0, max: 20 }),
    }),
    { maxLength: 8 },
  )
  .map((groups) => {
    const events: LedgerEvent[] = [seal("eval", 77, true)];
    const totals = { sampled: 0, trained: 0, unconsumed: 0, excluded: 0 };
    groups.forEach(({ fate, tokens, infra }, g) => {
      const members = tokens.map((n, m) => ({ trial: `g${g}-${m}`, tokens: n, disposition: TRAIN }));
      const failed = {
        trial: `g${g}-x`,
        tokens: infra,
        disposition: MemberDisposition.EXCLUDED,
        exclusion: ExclusionReason.INFRA,
      };
      const sum = tokens.reduce((a, b) => a + b, 0);
      for (const member of [...members, failed]) events.push(seal(member.trial, member.tokens));
      totals.sampled += sum + infra;
      totals[
        fate === "trained"
          ? "trained"
          : fate === "waiting" || fate === "ungrouped"
            ? "unconsumed"
            : "excluded"
      ] += sum;
      totals[fate === "ungrouped" ? "unconsumed" : "excluded"] += infra;
      if (fate === "ungrouped") return;
      events.push(
        group(`g${g}`, [...members, failed], fate === "dropped" ? ExclusionReason.ZERO_VARIANCE : undefined),
      );
      if (fate === "trained")
        events.push(
          step(
            g + 1,
            [`g${g}`],
            members.map((m) => ({ trial: m.trial, trained: m.tokens })),
          ),
        );
      if (fate === "stale") {
        const event = step(g + 1, [], []);
        (event.record as { staleGroups: string[] }).staleGroups = [`g${g}`];
        events.push(event);
      }
    });
    return { events, totals };
  });

describe("the ledger", () => {
  test("balances for any order and repetition of the records", () => {
    fc.assert(
      fc.property(runs, fc.infiniteStream(fc.nat()), ({ events, totals }, keys) => {
        const shuffled = [...events, ...events]
          .map((event) => ({ event, key: keys.next().value as number }))
          .sort((a, b) => a.key - b.key)
          .map((one) => one.event);
        const { ledger, evaluationSampled } = foldLedger(shuffled);
        expect(evaluationSampled).toBe(77);
        expect(Number(ledger.sampled)).toBe(totals.sampled);
        expect(Number(ledger.trained)).toBe(totals.trained);
        expect(Number(ledger.unconsumed)).toBe(totals.unconsumed);
        expect(ledger.excluded.reduce((n, part) => n + Number(part.tokens), 0)).toBe(totals.excluded);
      }),
    );
  });

  test("splits a trained trial by what its step says", () => {
    const { ledger } = foldLedger([
      seal("a", 10),
      group("g", [{ trial: "a", tokens: 10, disposition: TRAIN }]),
      step(1, ["g"], [{ trial: "a", trained: 7, notAdopted: 3 }]),
    ]);
    expect(ledger).toMatchObject({
      trained: 7n,
      excluded: [{ reason: ExclusionReason.NOT_ADOPTED, tokens: 3n }],
    });
  });

  test("counts a seal that came after its trial was given up", () => {
    const { EXCLUDED } = MemberDisposition;
    const givenUp = { trial: "a", tokens: 0, disposition: EXCLUDED, exclusion: ExclusionReason.INFRA };
    const { ledger } = foldLedger([group("g", [givenUp]), seal("a", 12)]);
    expect(ledger).toMatchObject({
      sampled: 12n,
      unconsumed: 0n,
      excluded: [{ reason: ExclusionReason.INFRA, tokens: 12n }],
    });
  });

  const member = { trial: "a", tokens: 10, disposition: TRAIN };
  test.each<[string, LedgerEvent[]]>([
    ["accounts for 9", [seal("a", 10), group("g", [member]), step(1, ["g"], [{ trial: "a", trained: 9 }])]],
    [
      "used twice",
      [
        seal("a", 10),
        group("g", [member]),
        step(1, ["g"], [{ trial: "a", trained: 10 }]),
        step(2, ["g"], [{ trial: "a", trained: 10 }]),
      ],
    ],
    ["in two groups", [seal("a", 10), group("g", [member]), group("h", [member])]],
    ["without its trial", [seal("a", 10), group("g", [member]), step(1, ["g"], [])]],
    ["no seal", [group("g", [member])]],
    ["recorded twice, differently", [seal("a", 10), seal("a", 11)]],
    ["in no group", [seal("a", 10), step(1, ["g"], [{ trial: "a", trained: 10 }])]],
    [
      "was not admitted",
      [
        seal("a", 10),
        group("g", [member], ExclusionReason.ZERO_VARIANCE),
        step(1, ["g"], [{ trial: "a", trained: 10 }]),
      ],
    ],
    ["evaluation trial", [seal("a", 10, true), group("g", [member])]],
    ["its group says 10", [seal("a", 12), group("g", [member])]],
  ])("refuses records that are %s", (message, events) => {
    expect(() => foldLedger(events)).toThrow(message);
  });
});
