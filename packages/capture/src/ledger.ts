/**
 * Owns the token ledger of a run: where every sampled token went. A pure fold over seals, group records and
 * step records, in any order and however often each is delivered (C5). Does not read streams.
 *
 * L1  sampled = trained + baselineOnly + Σ excluded + unconsumed, over training trials.
 * L2  A trial belongs to one group; a group is decided once; a trial is used by at most one step.
 * L3  A seal that came after its trial was given up counts all the same: the trial is excluded, and its tokens
 *     with it.
 * L4  Evaluation has its own count and never enters L1.
 */
import { create, equals } from "@bufbuild/protobuf";
import {
  ExclusionReason,
  GroupDisposition,
  type GroupMember,
  type GroupRecord,
  GroupRecordSchema,
  type Ledger,
  LedgerSchema,
  MemberDisposition,
  MortiseError,
  type SessionSealed,
  SessionSealedSchema,
  type StepRecord,
  StepRecordSchema,
  type TrialUse,
} from "@mortise/contracts";

export type LedgerEvent =
  | { readonly kind: "seal"; readonly record: SessionSealed }
  | { readonly kind: "group"; readonly record: GroupRecord }
  | { readonly kind: "step"; readonly record: StepRecord };

export interface LedgerResult {
  readonly ledger: Ledger;
  readonly evaluationSampled: number;
}

/** Folds all events at once; see LedgerFold. */
export function foldLedger(events: Iterable<LedgerEvent>): LedgerResult {
  const fold = new LedgerFold();
  for (const event of events) fold.add(event);
  return fold.result();
}

/** Collects events as they arrive; `result` may be asked at any time after the named seals are in. */
export class LedgerFold {
  private readonly seals = new Map<string, SessionSealed>();
  private readonly groups = new Map<string, GroupRecord>();
  private readonly steps = new Map<bigint, StepRecord>();

  /** @throws MortiseError MORTISE_CAPTURE_LEDGER when a record contradicts one already folded. */
  add(event: LedgerEvent): void {
    if (event.kind === "seal") {
      const isSame = (a: SessionSealed, b: SessionSealed) => equals(SessionSealedSchema, a, b);
      addOnce(this.seals, event.record.trial, event.record, isSame, "seal of trial");
    } else if (event.kind === "group") {
      const isSame = (a: GroupRecord, b: GroupRecord) => equals(GroupRecordSchema, a, b);
      addOnce(this.groups, event.record.group, event.record, isSame, "group");
    } else {
      const isSame = (a: StepRecord, b: StepRecord) => equals(StepRecordSchema, a, b);
      addOnce(this.steps, event.record.step, event.record, isSame, "step");
    }
  }

  /** The ledger now. @throws MortiseError MORTISE_CAPTURE_LEDGER when it does not balance (L1, L2). */
  result(): LedgerResult {
    const columns = new Columns();
    const open = new Map<string, number>();
    let evaluationSampled = 0;
    for (const seal of this.seals.values())
      if (seal.evaluation) evaluationSampled += Number(seal.sampledTokens);
      else open.set(seal.trial, Number(seal.sampledTokens));
    const sampled = sum(open.values());
    const uses = this.usesByTrial();
    const staleGroups = new Set([...this.steps.values()].flatMap((step) => step.staleGroups));
    const consumed = new Set([...this.steps.values()].flatMap((step) => step.groups));
    const placed = new Set<string>();
    for (const group of this.groups.values())
      for (const member of group.members) {
        if (placed.has(member.trial)) throw broken(`trial ${member.trial} is in two groups`);
        placed.add(member.trial);
        const tokens = this.sealedTokens(member);
        open.delete(member.trial);
        const fate = { isStale: staleGroups.has(group.group), isConsumed: consumed.has(group.group) };
        columns.place(group, member, tokens, uses.get(member.trial), fate);
        uses.delete(member.trial);
      }
    for (const trial of uses.keys()) throw broken(`trial ${trial} is used by a step but is in no group`);
    columns.unconsumed += sum(open.values());
    return { ledger: columns.balance(sampled), evaluationSampled };
  }

  private usesByTrial(): Map<string, TrialUse> {
    const uses = new Map<string, TrialUse>();
    for (const step of this.steps.values())
      for (const use of step.trials) {
        if (uses.has(use.trial)) throw broken(`trial ${use.trial} is used twice, again by step ${step.step}`);
        uses.set(use.trial, use);
      }
    return uses;
  }

  private sealedTokens(member: GroupMember): number {
    const seal = this.seals.get(member.trial);
    if (!seal) {
      if (member.sampledTokens === 0n) return 0;
      throw broken(`trial ${member.trial} has tokens but no seal`);
    }
    const wasGivenUp = member.sealSequence === 0n && member.disposition === MemberDisposition.EXCLUDED;
    if (wasGivenUp && member.sampledTokens === 0n && !seal.evaluation) return Number(seal.sampledTokens); // L3
    if (seal.evaluation) throw broken(`evaluation trial ${member.trial} is in a training group`);
    if (seal.sampledTokens !== member.sampledTokens)
      throw broken(
        `trial ${member.trial} has ${seal.sampledTokens} sealed tokens, its group says ${member.sampledTokens}`,
      );
    return Number(seal.sampledTokens);
  }
}

class Columns {
  trained = 0;
  baselineOnly = 0;
  unconsumed = 0;
  private readonly excluded = new Map<ExclusionReason, number>();

  place(
    group: GroupRecord,
    member: GroupMember,
    tokens: number,
    use: TrialUse | undefined,
    fate: { isStale: boolean; isConsumed: boolean },
  ): void {
    if (use) this.placeUse(group, member, tokens, use);
    else if (member.disposition === MemberDisposition.EXCLUDED) this.exclude(member.exclusion, tokens);
    else if (group.disposition === GroupDisposition.DROPPED) this.exclude(group.dropReason, tokens);
    else if (fate.isStale) this.exclude(ExclusionReason.STALE, tokens);
    else if (!fate.isConsumed) this.unconsumed += tokens;
    else if (member.disposition === MemberDisposition.BASELINE_ONLY) this.baselineOnly += tokens;
    else throw broken(`group ${group.group} was consumed without its trial ${member.trial}`);
  }

  private placeUse(group: GroupRecord, member: GroupMember, tokens: number, use: TrialUse): void {
    if (group.disposition !== GroupDisposition.ADMITTED)
      throw broken(`trial ${use.trial} was used although group ${group.group} was not admitted`);
    const excluded = use.excluded.map((part) => Number(part.tokens));
    const trained = Number(use.trainedTokens);
    const used = trained + Number(use.baselineOnlyTokens) + sum(excluded);
    if (used !== tokens)
      throw broken(`trial ${use.trial} sampled ${tokens} tokens, its step accounts for ${used}`);
    if (trained > 0 && member.disposition !== MemberDisposition.TRAIN)
      throw broken(`trial ${use.trial} was trained although its group excludes it`);
    this.trained += trained;
    this.baselineOnly += Number(use.baselineOnlyTokens);
    for (const part of use.excluded) this.exclude(part.reason, Number(part.tokens));
  }

  private exclude(reason: ExclusionReason, tokens: number): void {
    if (tokens === 0) return;
    if (reason === ExclusionReason.UNSPECIFIED)
      throw broken(`${tokens} tokens are excluded without a reason`);
    this.excluded.set(reason, (this.excluded.get(reason) ?? 0) + tokens);
  }

  balance(sampled: number): Ledger {
    const placed = this.trained + this.baselineOnly + this.unconsumed + sum(this.excluded.values());
    if (placed !== sampled) throw broken(`${sampled} tokens were sampled, ${placed} are accounted for`);
    return create(LedgerSchema, {
      sampled: BigInt(sampled),
      trained: BigInt(this.trained),
      baselineOnly: BigInt(this.baselineOnly),
      excluded: [...this.excluded]
        .sort(([a], [b]) => a - b)
        .map(([reason, tokens]) => ({ reason, tokens: BigInt(tokens) })),
      unconsumed: BigInt(this.unconsumed),
    });
  }
}

function addOnce<K, V>(
  known: Map<K, V>,
  key: K,
  record: V,
  isSame: (a: V, b: V) => boolean,
  what: string,
): void {
  const earlier = known.get(key);
  if (earlier !== undefined && !isSame(earlier, record))
    throw broken(`${what} ${key} is recorded twice, differently`);
  known.set(key, record);
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

function broken(what: string): MortiseError {
  return new MortiseError({ code: "MORTISE_CAPTURE_LEDGER", message: `${what}.` });
}
