/** Owns the table of cheats in docs/integrity.md: a row a cheat, as the suite runs it. */
import { CHEATS, OPEN_CHEATS } from "./cheats/all.js";

const ENDS = {
  tamper: "`invalid(tamper)`",
  unresolved: "`unresolved`",
  resolved: "**`resolved`**",
};

/** Every cheat that is stopped. */
export function stoppedTable(): string {
  return table(
    ["cheat", "tries", "ends", "stopped by"],
    CHEATS.map(({ name, tries, ends, stoppedBy }) => [`\`${name}\``, tries, ENDS[ends], stoppedBy]),
  );
}

/** Every cheat that is not. */
export function openTable(): string {
  return table(
    ["cheat", "tries", "ends", "why"],
    OPEN_CHEATS.map(({ name, tries, ends, stoppedBy }) => [`\`${name}\``, tries, ENDS[ends], stoppedBy]),
  );
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(header), line(header.map(() => "---")), ...rows.map(line)].join("\n");
}
