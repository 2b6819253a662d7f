/**
 * Owns the budgets of a session: turns, turns in a row without a tool call, context tokens, sampled tokens, wall
 * clock. 0 is unlimited. The first one that is reached is named in the seal. Rebuilt from the journal, so a
 * restart gives nothing back.
 *
 * B1  A turn is counted when it is planned and given back when nothing of it was captured.
 * B2  The wall clock starts with the first model call: what a trial waited for before is not the agent's time.
 * B3  Turns that run side by side may each sample up to what is left, so response tokens can end above their
 *     limit by the turns in flight, never by a turn that starts later.
 */
import { FinishReason, MortiseError, type Turn, TurnRole } from "@mortise/contracts";
import type { Clock } from "@mortise/kernel";
import type { SessionTerms } from "./token.js";

/** Names of budgets, as the seal carries them; the scheduler maps each to a termination reason. */
export type BudgetName = "turns" | "turns_without_call" | "prompt_tokens" | "response_tokens" | "wall_clock";

export class Budget {
  /** Name of the budget that ended the trial; empty while none has. */
  reached: BudgetName | "" = "";
  private readonly limits: SessionTerms["budget"];
  private readonly clock: Clock;
  private startedAt: number | undefined;
  private turns = 0;
  private promptTokens = 0;
  private responseTokens = 0;
  /** By thread: trained turns since its last tool call. */
  private readonly withoutCall = new Map<string, number>();

  constructor(limits: SessionTerms["budget"], clock: Clock) {
    this.limits = limits;
    this.clock = clock;
  }

  /** Counts a turn found in the journal. */
  restore(turn: Turn, contextTokens: number): void {
    this.startedAt = Math.min(this.startedAt ?? Number.POSITIVE_INFINITY, Number(turn.startedAtMs));
    this.turns++;
    this.promptTokens += contextTokens;
    this.captured(turn);
  }

  /** @throws MortiseError MORTISE_PROVIDER_BUDGET when no further turn may be started, whatever it is */
  check(): void {
    this.startedAt ??= this.clock.now();
    const { turns, responseTokens, wallClockMs } = this.limits;
    if (isSpent(this.turns, turns)) throw this.refuse("turns", turns);
    if (isSpent(this.responseTokens, responseTokens)) throw this.refuse("response_tokens", responseTokens);
    if (isSpent(this.clock.now() - this.startedAt, wallClockMs)) throw this.refuse("wall_clock", wallClockMs);
  }

  /** Takes a turn; returns how many tokens it may sample. @throws as `check` */
  reserve(thread: string, contextTokens: number, maxTokens: number): number {
    const { promptTokens, responseTokens, turnsWithoutCall } = this.limits;
    if (isSpent(this.withoutCall.get(thread) ?? 0, turnsWithoutCall))
      throw this.refuse("turns_without_call", turnsWithoutCall);
    if (promptTokens > 0 && this.promptTokens + contextTokens > promptTokens)
      throw this.refuse("prompt_tokens", promptTokens);
    this.turns++;
    this.promptTokens += contextTokens;
    return responseTokens > 0 ? Math.min(maxTokens, responseTokens - this.responseTokens) : maxTokens;
  }

  /** Gives back a turn of which nothing was captured (B1). */
  release(contextTokens: number): void {
    this.turns--;
    this.promptTokens -= contextTokens;
  }

  captured(turn: Turn): void {
    this.responseTokens += turn.sampledIds.byteLength / 4;
    // Titles and summaries never call tools, and what we cut short might have.
    if (turn.role !== TurnRole.TRAIN || turn.finish === FinishReason.ABORT) return;
    const before = this.withoutCall.get(turn.thread) ?? 0;
    this.withoutCall.set(turn.thread, turn.toolCalls.length > 0 ? 0 : before + 1);
  }

  private refuse(name: BudgetName, limit: number): MortiseError {
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
