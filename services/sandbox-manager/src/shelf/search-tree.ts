/**
 * Owns searching a stored work tree for a task's answers, for trees that hold no repository and lie over programs of
 * this host: nothing is hidden, since there is nothing to hide, and nothing is changed.
 */
import path from "node:path";
import { type Answers, type SealReport, searchForAnswers } from "../sealing/index.js";
import { answerFound } from "../sealing/seal-errors.js";

/** The search holds up everything else in this process: trees with more files are sealed on a thread of their own. */
export const MAX_SEARCHED_FILES = 256;

/**
 * The same record as sealing gives. Rejects with MORTISE_SANDBOX_SEAL_ANSWER when something is found.
 * @param scratch directory of the host for what is needed only meanwhile
 */
export async function searchTree(directory: string, answers: Answers, scratch: string): Promise<SealReport> {
  const root = path.dirname(directory);
  const workdir = `/${path.basename(directory)}`;
  const search = await searchForAnswers(root, { workdir, answers, scratch });
  const history = { state: "none", nTracked: 0, nMoved: 0, moved: [], kept: [] } as const;
  const report: SealReport = { format: "mortise-seal/1", history, search };
  if (!search.isClean) throw answerFound(report);
  return report;
}
