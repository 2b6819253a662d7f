/**
 * Owns the behaviour section of a report: every trial's main conversation, scanned, summed up a set. Needs the
 * checkpoint's tokenizer, as captures hold ids; where it is gone the section is absent, with the reason.
 */

import { MortiseError, type Turn } from "@mortise/contracts";
import {
  type BehaviourSummary,
  scanBehaviour,
  summariseBehaviour,
  type TrialFact,
} from "@mortise/evaluation";
import { HARNESSES } from "@mortise/harnesses";
import { PolicyText } from "./policy-text.js";
import type { RunHistory } from "./run-history.js";
import { mainTranscript, readTranscript } from "./transcripts.js";
import { setsOf } from "./trial-facts.js";

export interface SetBehaviour extends BehaviourSummary {
  readonly set: string;
  readonly harness: string;
}

/** One row for each set and harness; a reason instead when turns cannot be read. */
export async function behavioursOf(
  history: RunHistory,
  facts: readonly TrialFact[],
  checkpoint: string | undefined,
): Promise<{ readonly rows: readonly SetBehaviour[] } | { readonly absent: string }> {
  const directory = checkpoint ?? history.config?.policy.checkpoint;
  if (directory === undefined)
    return { absent: "the run's checkpoint is not known; name it with --checkpoint" };
  let text: PolicyText;
  try {
    text = await PolicyText.open(directory, history.config?.policy);
  } catch (error) {
    if (!(error instanceof MortiseError)) throw error;
    return { absent: error.message };
  }
  const turns = turnsByTrial(history.turns);
  return {
    rows: setsOf(facts).flatMap((set) => rowsOf(set, facts, (trial) => scanned(trial, turns, history, text))),
  };
}

interface Scanned {
  readonly harness: string;
  readonly behaviour: ReturnType<typeof scanBehaviour>;
}

function rowsOf(
  set: string,
  facts: readonly TrialFact[],
  scan: (trial: string) => Scanned | undefined,
): SetBehaviour[] {
  const byHarness = new Map<string, Parameters<typeof summariseBehaviour>[0][number][]>();
  for (const { trial, verdict } of facts.filter((fact) => fact.set === set)) {
    const found = scan(trial);
    if (found === undefined) continue;
    const isResolved = verdict === "resolved" ? true : verdict === "unresolved" ? false : undefined;
    const row = { behaviour: found.behaviour, isResolved };
    const known = byHarness.get(found.harness);
    if (known) known.push(row);
    else byHarness.set(found.harness, [row]);
  }
  return [...byHarness].map(([harness, trials]) => ({ set, harness, ...summariseBehaviour(trials) }));
}

/** Undefined for a trial without a turn: nothing can be said of what its agent did. */
function scanned(
  trial: string,
  turns: ReadonlyMap<string, readonly Turn[]>,
  history: RunHistory,
  text: PolicyText,
): Scanned | undefined {
  const own = turns.get(trial);
  if (own === undefined) return undefined;
  const harness = harnessOf(own, history);
  return { harness, behaviour: scanBehaviour(mainTranscript(readTranscript(own, text), harness)) };
}

export function turnsByTrial(turns: readonly Turn[]): ReadonlyMap<string, readonly Turn[]> {
  const found = new Map<string, Map<string, Turn>>();
  for (const turn of turns) {
    const known = found.get(turn.trial);
    // A record may be told twice; it is the same.
    if (known) known.set(turn.turn, turn);
    else found.set(turn.trial, new Map([[turn.turn, turn]]));
  }
  return new Map([...found].map(([trial, own]) => [trial, [...own.values()]]));
}

/** As the calls' own signals name it, else as the run file does. */
export function harnessOf(turns: readonly Turn[], { config }: RunHistory): string {
  const signalled = turns
    .map(({ harness }) => harness)
    .find((name) => HARNESSES.some((one) => one.name === name));
  return signalled ?? config?.rollout.harness ?? "unknown";
}
