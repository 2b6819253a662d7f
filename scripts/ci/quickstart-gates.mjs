/**
 * Owns what must hold of every quick start, however short: all but the rise of the solve rate, which needs
 * the full length. Reads the last line of `quickstart --json`; does not run it.
 */

/** Greatest difference allowed between a sampled and a recomputed log-probability. */
const MAX_ABS_DELTA = 1e-3;

/**
 * @param code exit code of the quick start
 * @param line its last line
 * @returns gates, each with what was found
 */
export function checkQuickstart(code, line) {
  let summary;
  try {
    summary = JSON.parse(line);
  } catch {
    return [
      {
        name: "ends with one JSON object",
        holds: false,
        found: `exit ${code}, last line: ${line.slice(0, 200)}`,
      },
    ];
  }
  const { tokens, staleness, consistency, services, solveRate, schema } = summary;
  const excluded =
    typeof tokens.excluded === "number"
      ? tokens.excluded
      : Object.values(tokens.excluded).reduce((a, b) => a + b, 0);
  const accounted = tokens.trained + tokens.baselineOnly + excluded + tokens.unconsumed;
  const gate = (name, holds, found) => ({ name, holds, found: JSON.stringify(found) });
  return [
    gate("exit code 0", code === 0, code),
    gate("schema 1", schema === 1, schema),
    gate("the ledger balances", tokens.sampled > 0 && accounted === tokens.sampled, tokens),
    gate("tokens were trained", tokens.trained > 0, tokens),
    gate("staleness within the bound", staleness.max <= staleness.bound, staleness),
    gate(
      "sampled and recomputed log-probabilities agree",
      consistency.maxAbsDeltaLogp > 0 && consistency.maxAbsDeltaLogp <= MAX_ABS_DELTA,
      consistency,
    ),
    gate("both evaluations ran", solveRate.before > 0 && solveRate.after > 0, solveRate),
    gate(
      "no service restarted",
      services.length >= 6 && services.every((service) => service.restarts === 0),
      services,
    ),
  ];
}
