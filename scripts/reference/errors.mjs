/** Owns docs/reference/errors.md: one row per stable error code, by the boundary that was crossed. */
import { code, page, table } from "./markdown.mjs";

export function renderErrors({ ERROR_CATALOGUE, boundaryOf }) {
  const boundaries = Map.groupBy(Object.entries(ERROR_CATALOGUE), ([name]) => boundaryOf(name));
  const sections = [...boundaries].flatMap(([boundary, rows]) => [
    `## ${boundary}`,
    table(
      ["code", "disposition", "meaning", "fix"],
      rows.map(([name, { disposition, meaning, fix }]) => [code(name), disposition, meaning, fix]),
    ),
  ]);
  return page("Error codes", "packages/contracts/src/errors/", [
    "A code names the boundary that was crossed and is stable once released. `retry`: the same action may " +
      "succeed later; `terminal`: it will not; `budget`: a limit that the run set was reached. A command that " +
      "fails for a reason of the operator's ends with exit code 2.",
    ...sections,
  ]);
}
