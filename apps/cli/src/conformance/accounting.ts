/**
 * Owns what must hold of a captured trial whatever its harness did: every call of the engine has its turn, under
 * exactly the ids the engine was given (C1), and every sampled token is accounted for once (C5).
 */
import { create } from "@bufbuild/protobuf";
import {
  type AssembledTrial,
  assembleTrial,
  foldLedger,
  type LedgerEvent,
  TurnTree,
  unpackIds,
} from "@mortise/capture";
import {
  GroupDisposition,
  GroupRecordSchema,
  MemberDisposition,
  MortiseError,
  type SessionSealed,
  StepRecordSchema,
  type Turn,
} from "@mortise/contracts";
import type { Played } from "./played-policy.js";

export interface Accounted {
  readonly trial: AssembledTrial | undefined;
  readonly problems: readonly string[];
}

export function account(turns: readonly Turn[], seal: SessionSealed, played: readonly Played[]): Accounted {
  const problems = [...contextProblems(turns, played)];
  if (seal.failure !== "" && !played.some((one) => one.isFailure))
    problems.push(`the seal names the failure ${seal.failure}`);
  try {
    const trial = assembleTrial(turns, seal);
    return { trial, problems: [...problems, ...tokenProblems(trial, seal), ...ledgerProblems(trial, seal)] };
  } catch (error) {
    if (!(error instanceof MortiseError)) throw error;
    return { trial: undefined, problems: [...problems, error.message] };
  }
}

/** C1: the tree gives back each turn's context, and it is what the engine saw. */
function* contextProblems(turns: readonly Turn[], played: readonly Played[]): Generator<string> {
  const tree = new TurnTree();
  for (const turn of turns) tree.add(turn);
  const byIndex = new Map(turns.map((turn) => [turn.index, turn]));
  for (const { request, reply, isFailure } of played) {
    const turn = byIndex.get(request.turnIndex);
    byIndex.delete(request.turnIndex);
    if (!turn) {
      if (!isFailure) yield `the engine was asked for turn ${request.turnIndex}, which is not captured`;
      continue;
    }
    if (!isEqual(tree.contextOf(turn.turn), request.contextIds))
      yield `turn ${turn.index} is not captured under the ids the engine was given`;
    const sampled = unpackIds(turn.sampledIds);
    if (!isEqual(sampled, reply.ids.slice(0, sampled.length)))
      yield `turn ${turn.index} has other ids than the engine gave`;
  }
  for (const turn of byIndex.values())
    yield `turn ${turn.index} was captured, but no engine was asked for it`;
}

/** C5, within the trial: each sampled token is masked in one row or excluded under one reason. */
function* tokenProblems(trial: AssembledTrial, seal: SessionSealed): Generator<string> {
  const excluded = [...trial.exclusions.values()].reduce((sum, tokens) => sum + tokens, 0);
  if (trial.sampledTokens !== Number(seal.sampledTokens))
    yield `${seal.sampledTokens} tokens are sealed, ${trial.sampledTokens} assembled`;
  if (trial.trainableTokens + excluded !== trial.sampledTokens)
    yield `${trial.sampledTokens} sampled, ${trial.trainableTokens} trainable and ${excluded} excluded`;
  const masked = trial.sequences.reduce((sum, row) => sum + row.mask.filter((bit) => bit === 1).length, 0);
  if (masked !== trial.trainableTokens)
    yield `${trial.trainableTokens} tokens are trainable, ${masked} are masked in rows`;
}

/** C5, over the run: as if a step had trained on this trial. */
function ledgerProblems(trial: AssembledTrial, seal: SessionSealed): string[] {
  const group = "group";
  const events: LedgerEvent[] = [
    { kind: "seal", record: seal },
    {
      kind: "group",
      record: create(GroupRecordSchema, {
        run: seal.run,
        group,
        disposition: GroupDisposition.ADMITTED,
        members: [
          {
            trial: seal.trial,
            sealSequence: seal.lastSequence + 1n,
            sampledTokens: seal.sampledTokens,
            disposition: MemberDisposition.TRAIN,
          },
        ],
      }),
    },
    {
      kind: "step",
      record: create(StepRecordSchema, {
        run: seal.run,
        step: 1n,
        groups: [group],
        trials: [
          {
            trial: seal.trial,
            trainedTokens: BigInt(trial.trainableTokens),
            excluded: [...trial.exclusions].map(([reason, tokens]) => ({ reason, tokens: BigInt(tokens) })),
          },
        ],
      }),
    },
  ];
  const { ledger } = foldLedger(events);
  return ledger.unconsumed === 0n ? [] : [`${ledger.unconsumed} tokens are in no column of the ledger`];
}

function isEqual(a: Int32Array, b: ArrayLike<number>): boolean {
  if (a.length !== b.length) return false;
  return a.every((id, at) => id === b[at]);
}
