/** Owns the table a conformance run prints. */
import type { ConformanceReport } from "./conformance.js";
import type { CaseResult } from "./run-case.js";

const COLUMNS = ["api", "case", "", "turns", "alignment", "trained / sampled", "seconds"] as const;

export function tableOf(report: ConformanceReport): string[] {
  const rows = report.results.map(rowOf);
  const widths = COLUMNS.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]!.length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at]!))
      .join("  ")
      .trimEnd();
  return [
    `${report.harness} ${report.version}`,
    "",
    line(COLUMNS),
    ...report.results.flatMap((result, at) => [
      line(rows[at]!),
      ...result.reasons.map((reason) => `    ${reason}`),
    ]),
    "",
    `${report.passed} passed, ${report.failed} failed, ${report.notApplicable} not applicable`,
  ];
}

/** One line while the run goes on. */
export function progressLine(result: CaseResult): string {
  const { wireApi, outcome, reasons } = result;
  return `${outcome.padEnd(4)}  ${wireApi}  ${result.case}${outcome === "fail" ? `: ${reasons.join("; ")}` : ""}`;
}

function rowOf(result: CaseResult): string[] {
  if (result.outcome === "n/a") return [result.wireApi, result.case, "n/a", "", "", "", ""];
  const { trainable, sampled } = result.tokens;
  const classes = Object.entries(result.alignment).map(([name, turns]) => `${name} ${turns}`);
  return [
    result.wireApi,
    result.case,
    result.outcome,
    String(result.turns),
    classes.join(", "),
    `${trainable} / ${sampled}`,
    (result.ms / 1000).toFixed(1),
  ];
}
