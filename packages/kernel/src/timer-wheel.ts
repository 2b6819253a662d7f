/**
 * Owns many timers on few system timers: thousands of trials each hold a deadline or two, and almost all of
 * them are cancelled before they fire, so starting and cancelling must cost next to nothing.
 * Does not promise precision: a timer fires at its due time rounded up to the tick.
 *
 * W1  A timer never fires early.
 * W2  Timers fire in order of their tick; within one tick, in the order they were started.
 * W3  The wheel asks its clock for a call only while it holds timers.
 */
import type { Cancel, Clock } from "./clock.js";

interface Timer {
  readonly dueTick: number;
  readonly fn: () => void;
}

/** A hashed wheel: slot = tick modulo the number of slots, with timers of later rounds left in place. */
export class TimerWheel implements Clock {
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #slots: Set<Timer>[];
  #size = 0;
  #tick: number;
  #cancelTick: Cancel | undefined;
  #closed = false;

  /** @param tickMs resolution in milliseconds; 512 slots of it make one round. */
  constructor(clock: Clock, tickMs = 20, nSlots = 512) {
    this.#clock = clock;
    this.#tickMs = tickMs;
    this.#slots = Array.from({ length: nSlots }, () => new Set<Timer>());
    this.#tick = this.#currentTick();
  }

  now(): number {
    return this.#clock.now();
  }

  after(delayMs: number, fn: () => void): Cancel {
    if (this.#closed) return () => {};
    if (this.#size === 0) this.#tick = this.#currentTick();
    // W1: rounding up; at least one tick ahead, because the current slot has already been swept.
    const dueTick = Math.max(
      this.#tick + 1,
      Math.ceil((this.#clock.now() + Math.max(0, delayMs)) / this.#tickMs),
    );
    const timer = { dueTick, fn };
    this.#slotOf(dueTick).add(timer);
    this.#size++;
    this.#arm();
    return () => this.#remove(timer);
  }

  /** Drops every timer; later requests are ignored. */
  close(): void {
    this.#closed = true;
    for (const slot of this.#slots) slot.clear();
    this.#size = 0;
    this.#disarm();
  }

  #currentTick(): number {
    return Math.floor(this.#clock.now() / this.#tickMs);
  }

  #slotOf(tick: number): Set<Timer> {
    return this.#slots[tick % this.#slots.length]!;
  }

  #remove(timer: Timer): void {
    if (!this.#slotOf(timer.dueTick).delete(timer)) return;
    this.#size--;
    if (this.#size === 0) this.#disarm();
  }

  #arm(): void {
    if (this.#cancelTick !== undefined || this.#size === 0) return; // W3
    const untilNextMs = (this.#tick + 1) * this.#tickMs - this.#clock.now();
    this.#cancelTick = this.#clock.after(untilNextMs, () => this.#sweep());
  }

  #disarm(): void {
    this.#cancelTick?.();
    this.#cancelTick = undefined;
  }

  #sweep(): void {
    this.#cancelTick = undefined;
    const target = this.#currentTick();
    // A process that was suspended may owe more rounds than it has slots; W2 still holds tick by tick.
    while (this.#tick < target && this.#size > 0) {
      this.#tick++;
      this.#fire(this.#tick);
    }
    this.#tick = Math.max(this.#tick, target);
    this.#arm();
  }

  #fire(tick: number): void {
    const slot = this.#slotOf(tick);
    for (const timer of slot) {
      if (timer.dueTick > tick) continue;
      slot.delete(timer);
      this.#size--;
      timer.fn();
    }
  }
}
