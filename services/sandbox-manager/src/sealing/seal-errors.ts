/**
 * Owns how errors of sealing are made. Meanings and fixes are in the catalogue.
 */
import { MortiseError } from "@mortise/contracts";
import type { SealReport } from "./types.js";

/** A step could not be done. @param fix replaces the catalogue's when the operator can do something more exact */
export function sealFailed(message: string, options: { cause?: unknown; fix?: string } = {}): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_SEAL", message, ...options });
}

/** The report is in `detail`. */
export function answerFound(report: SealReport): MortiseError {
  const { hits, nHits, gaps, nGaps } = report.search;
  const shown = [
    ...hits.slice(0, 3).map((hit) => `${hit.kind} ${hit.path} (${hit.probe})`),
    ...gaps
      .filter((gap) => !gap.isAccepted)
      .slice(0, 3)
      .map((gap) => `not searched: ${gap.path} (${gap.reason})`),
  ];
  return new MortiseError({
    code: "MORTISE_SANDBOX_SEAL_ANSWER",
    message: `${nHits} hits and ${nGaps} gaps: ${shown.join("; ")}`,
    detail: { report },
  });
}
