/**
 * Owns the order of sealing and its one verdict: hide, then search what is left. Does not return unless nothing was
 * found and nothing was left out. Runs where it is called (see seal-root.ts for the thread).
 */
import { byteString } from "./byte-path.js";
import { hideHistory } from "./hide-history.js";
import { answerFound } from "./seal-errors.js";
import { searchForAnswers } from "./search/search-for-answers.js";
import type { SealReport, SealRequest } from "./types.js";

export async function seal(directory: string, request: SealRequest): Promise<SealReport> {
  const history = await hideHistory(directory, request);
  // A name that needs escapes is not found again, and the new repository is then searched like any other.
  const own = history.repository === undefined ? undefined : byteString(history.repository);
  const search = await searchForAnswers(directory, request, own);
  const report: SealReport = { format: "mortise-seal/1", history, search };
  if (!search.isClean) throw answerFound(report);
  return report;
}
