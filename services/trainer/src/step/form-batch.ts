/**
 * Owns which decided groups make up a step: a pure function of stream order, so a restarted trainer forms the
 * same batch from the same place. Does not own admission (the scheduler's) or training.
 *
 * B1  Groups are consumed strictly in stream order; what is consumed is described by one sequence, the cursor.
 * B2  A group whose lowest trained version is past the bound at this step is refused here, whatever admitted
 *     it and however old the queue got: this check is the staleness guarantee (DESIGN §6).
 * B3  Without refill every decided group counts towards the batch; with refill only groups that train do.
 */
import { GroupDisposition, type GroupRecord, MemberDisposition } from "@mortise/contracts";
import { isTooStale } from "@mortise/objectives";

/** A group as it lies on the GROUPS stream. */
export interface DecidedGroup {
  readonly sequence: number;
  readonly record: GroupRecord;
}

export type Fate = "admitted" | "dropped" | "stale";

export interface BatchGroup extends DecidedGroup {
  readonly fate: Fate;
}

export interface BatchRules {
  readonly groupsPerStep: number;
  readonly refillDropped: boolean;
  /** η. */
  readonly staleBound: number;
}

/** The batch of `step` from the head of the queue, or undefined while groups are missing. */
export function formBatch(
  queue: readonly DecidedGroup[],
  step: number,
  rules: BatchRules,
): BatchGroup[] | undefined {
  const batch: BatchGroup[] = [];
  let counted = 0;
  for (const group of queue) {
    const fate = fateOf(group.record, step, rules.staleBound);
    batch.push({ ...group, fate });
    if (!rules.refillDropped || fate === "admitted") counted += 1;
    if (counted === rules.groupsPerStep) return batch;
  }
  return undefined;
}

/** Lowest version among the tokens of the members to be trained; undefined when none has tokens. */
export function lowestVersion(record: GroupRecord): number | undefined {
  let lowest: number | undefined;
  for (const member of record.members) {
    if (member.disposition !== MemberDisposition.TRAIN || member.lowestVersion === undefined) continue;
    const version = Number(member.lowestVersion);
    if (lowest === undefined || version < lowest) lowest = version;
  }
  return lowest;
}

function fateOf(record: GroupRecord, step: number, bound: number): Fate {
  if (record.disposition !== GroupDisposition.ADMITTED) return "dropped";
  const lowest = lowestVersion(record);
  return lowest !== undefined && isTooStale(step, lowest, bound) ? "stale" : "admitted";
}
