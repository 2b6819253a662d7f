/**
 * Owns writing what was judged again beside the verdicts: one record a trial that differs from what stands.
 *
 * A1  A verdict is never edited or removed; readers prefer the last regrade.
 * A2  Writing the same again writes nothing: what stands is then what was judged. Two who write at once cannot both:
 *     each record names the sequence it follows.
 */
import { RegradeSchema, subject } from "@mortise/contracts";
import type { Bus } from "@mortise/kernel";
import type { RegradedTrial } from "./regrade-run.js";
import type { RunVerdicts } from "./run-verdicts.js";

export interface Audit {
  readonly author: string;
  readonly why: string;
  readonly atMs: number;
}

/** @returns how many records were written. Throws MORTISE_TRANSPORT_SEQUENCE_CONFLICT when another one regrades the run now. */
export async function applyRegrades(
  bus: Bus,
  run: RunVerdicts,
  trials: readonly RegradedTrial[],
  audit: Audit,
): Promise<number> {
  const different = trials.filter(({ isChanged, isRefined }) => isChanged || isRefined);
  for (const { trial, before, after, evidenceSha256 } of different) {
    const followed = run.regrades.get(trial)?.sequence ?? 0n;
    await bus.publish({
      subject: subject.regrade(run.run, trial),
      schema: RegradeSchema,
      message: {
        run: run.run,
        trial,
        verdictSequence: run.verdicts.get(trial)!.sequence,
        judged: after,
        earlierOutcome: before.outcome,
        ...(before.reward === undefined ? {} : { earlierReward: before.reward }),
        earlierGrader: before.grader,
        evidenceSha256,
        author: audit.author,
        why: audit.why,
        atMs: BigInt(audit.atMs),
      },
      // The same statement after the same record is one statement, whoever makes it.
      dedupeId: `${run.run}/${trial}/regrade/${followed}/${after.outcome}/${after.reward}/${after.grader}`,
      expectLastSubjectSequence: Number(followed),
    });
  }
  return different.length;
}
