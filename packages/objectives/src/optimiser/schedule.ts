/**
 * Owns learning-rate schedules as pure functions of the update number, counted from 1.
 * (Schedulers that count from 0 make their first warm-up update with a rate of 0; `countFrom: 0` reproduces them.)
 */
export interface WarmupOptions {
  readonly peak: number;
  /** Updates until the peak; 0 = none. */
  readonly warmup: number;
  readonly countFrom?: 0 | 1;
}

/** Linear warm-up, then constant: peak · min(1, update / warmup). */
export function warmupConstant(update: number, { peak, warmup, countFrom = 1 }: WarmupOptions): number {
  const elapsed = update - 1 + countFrom;
  return warmup <= 0 ? peak : peak * Math.min(1, elapsed / warmup);
}

export interface CosineOptions extends WarmupOptions {
  /** Updates in total. */
  readonly total: number;
  /** Final rate as a fraction of the peak. */
  readonly finalFraction: number;
}

/** Linear warm-up, then half a cosine from the peak down to finalFraction · peak at the last update. */
export function warmupCosine(update: number, options: CosineOptions): number {
  if (update <= options.warmup) return warmupConstant(update, options);
  const span = Math.max(1, options.total - options.warmup);
  const progress = Math.min(1, (update - options.warmup) / span);
  const shape = (1 + Math.cos(Math.PI * progress)) / 2;
  return options.peak * (options.finalFraction + (1 - options.finalFraction) * shape);
}
