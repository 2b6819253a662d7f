/**
 * Owns reading the captured turns of a batch from CAPTURES by stream sequence, and their assembly into rows.
 * Does not decide what is trained.
 */
import { assembleTrial } from "@mortise/capture";
import {
  CaptureRecordSchema,
  type GroupMember,
  MortiseError,
  type SessionSealed,
  type Turn,
} from "@mortise/contracts";
import type { Bus } from "@mortise/kernel";
import type { BatchGroup } from "./form-batch.js";
import type { LoadedGroup, LoadedTrial } from "./plan-step.js";

/** Direct reads in flight at once: enough to hide the round trip, few enough to bound memory. */
const CONCURRENT_READS = 16;

/** Loads the members of admitted groups; dropped and stale groups need no tokens. */
export async function loadGroups(bus: Bus, batch: readonly BatchGroup[]): Promise<LoadedGroup[]> {
  const loaded: LoadedGroup[] = [];
  for (const group of batch) {
    const members =
      group.fate === "admitted" ? group.record.members.filter((member) => member.sealSequence > 0n) : [];
    const trials = new Map<string, LoadedTrial>();
    for (let at = 0; at < members.length; at += CONCURRENT_READS) {
      const chunk = members.slice(at, at + CONCURRENT_READS);
      const read = await Promise.all(chunk.map((member) => loadTrial(bus, member)));
      for (const [i, member] of chunk.entries()) trials.set(member.trial, read[i]!);
    }
    loaded.push({ group, trials });
  }
  return loaded;
}

/**
 * Records that contradict each other or are gone cost their trial, not the run: it counts as lost to
 * infrastructure, with every token accounted for, and the reason goes to the log. Anything else is thrown.
 */
async function loadTrial(bus: Bus, member: GroupMember): Promise<LoadedTrial> {
  try {
    const seal = await readSeal(bus, member);
    const turns = await Promise.all(member.turnSequences.map((sequence) => readTurn(bus, member, sequence)));
    return { assembled: assembleTrial(turns, seal), turns: turns.length };
  } catch (error) {
    if (!(error instanceof MortiseError) || error.disposition !== "terminal") throw error;
    bus.log.error({ event: "trial.unreadable", trial: member.trial, err: error });
    return { fault: error.code, turns: member.turnSequences.length };
  }
}

async function readTurn(bus: Bus, member: GroupMember, sequence: bigint): Promise<Turn> {
  const { record } = await bus.at("CAPTURES", Number(sequence), CaptureRecordSchema);
  if (record.case === "turn" && record.value.trial === member.trial) return record.value;
  throw misplaced(member, sequence, "a turn");
}

async function readSeal(bus: Bus, member: GroupMember): Promise<SessionSealed> {
  const { record } = await bus.at("CAPTURES", Number(member.sealSequence), CaptureRecordSchema);
  if (record.case === "sealed" && record.value.trial === member.trial) return record.value;
  throw misplaced(member, member.sealSequence, "the seal");
}

function misplaced(member: GroupMember, sequence: bigint, what: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_CAPTURE_INVALID",
    message: `CAPTURES sequence ${sequence} is not ${what} of trial ${member.trial}.`,
    detail: { trial: member.trial, sequence: String(sequence) },
  });
}
