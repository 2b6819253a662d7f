/** Owns showing how many tasks each rule dropped. */
import type { FunnelStep } from "@mortise/tasks/selection";

const HEADER = ["rule", "dropped", "unknown", "left"] as const;

export function funnelTable(funnel: readonly FunnelStep[]): string[] {
  const rows = funnel.map(({ rule, dropped, unknown, left }) => [rule, dropped, unknown, left].map(String));
  const widths = HEADER.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => row[column]!.length)),
  );
  return [[...HEADER], ...rows].map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
      .join("  "),
  );
}
