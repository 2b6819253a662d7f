/**
 * Owns the budgets of a session: turns, context tokens, sampled tokens, wall clock. 0 is unlimited. The first
 * one that is reached is named in the seal.
 */
import { MortiseError } from "@mortise/contracts";
import type { Clock } from "@mortise/kernel";
import type { SessionTerms } from "./token.js";

export class Budget {
  /** Name of the budget that ended the trial; empty while none has. */
  reached = "";
  private readonly limits: SessionTerms["budget"];
  private readonly clock: Clock;
  private readonly openedAt: number;
  private turns = 0;
  private promptTokens = 0;
  private responseTokens = 0;

  constructor(limits: SessionTerms["budget"], clock: Clock) {
    this.limits = limits;
    this.clock = clock;
    this.openedAt = clock.now();
  }

  /** Counts a turn found in the journal. */
  restore(promptTokens: number, responseTokens: number): void {
    this.turns++;
    this.promptTokens += promptTokens;
    this.responseTokens += responseTokens;
  }

  /** @throws MortiseError MORTISE_PROVIDER_BUDGET when another turn may not be started */
  check(): void {
    const { turns, responseTokens, wallClockMs } = this.limits;
    if (isSpent(this.turns, turns)) throw this.refuse("turns", turns);
    if (isSpent(this.responseTokens, responseTokens)) throw this.refuse("response_tokens", responseTokens);
    if (isSpent(this.clock.now() - this.openedAt, wallClockMs)) throw this.refuse("wall_clock", wallClockMs);
  }

  /** Takes a turn; returns how many tokens it may sample. @throws as `check` */
  reserve(contextTokens: number, maxTokens: number): number {
    const { promptTokens, responseTokens } = this.limits;
    if (promptTokens > 0 && this.promptTokens + contextTokens > promptTokens)
      throw this.refuse("prompt_tokens", promptTokens);
    this.turns++;
    this.promptTokens += contextTokens;
    return responseTokens > 0 ? Math.min(maxTokens, responseTokens - this.responseTokens) : maxTokens;
  }

  sampled(tokens: number): void {
    this.responseTokens += tokens;
  }

  private refuse(name: string, limit: number): MortiseError {
    if (this.reached === "") this.reached = name;
    return new MortiseError({
      code: "MORTISE_PROVIDER_BUDGET",
      message: `The limit of ${limit} (${name}) is reached.`,
      detail: { field: name },
    });
  }
}

function isSpent(used: number, limit: number): boolean {
  return limit > 0 && used >= limit;
}
