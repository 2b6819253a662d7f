/** Owns the record of what rendering changed, for the turn's audit. */

/** Something the policy is shown differently from how the request has it. */
export interface RenderNote {
  /** What was done, kebab-case. */
  readonly what: "system-merged-up" | "system-to-user" | "reasoning-stripped" | "arguments-wrapped";
  /** Where in the normalised conversation: `messages[3]`. */
  readonly field: string;
}
