/**
 * Owns difficulty bands: how a task's measured solve rate is called. What a band is worth for training is chosen by
 * whoever selects tasks. A task without a counted attempt is in none: unknown is not hard.
 */
import { wilsonInterval } from "@mortise/objectives";
import type { Interval } from "../statistics/bootstrap.js";
import { solvedOf, type TaskAttempts } from "../statistics/task-attempts.js";

/** In order of the solve rate: 0; up to 1/4; between; from 3/4; 1. */
export const BANDS = ["never", "hard", "medium", "easy", "always"] as const;
export type Band = (typeof BANDS)[number];

const HARD_TO = 0.25;
const EASY_FROM = 0.75;

/** @param rate in [0, 1] */
export function bandOf(rate: number): Band {
  if (rate === 0) return "never";
  if (rate === 1) return "always";
  if (rate <= HARD_TO) return "hard";
  return rate < EASY_FROM ? "medium" : "easy";
}

/** What was measured of one task. */
export interface Difficulty {
  readonly task: string;
  /** With a valid verdict. */
  readonly attempts: number;
  readonly resolved: number;
  /** In [0, 1]. */
  readonly solveRate: number;
  /** 95 %, Wilson: how little a few attempts say. */
  readonly interval: Interval | null;
  readonly band: Band;
}

export function difficultyOf(task: TaskAttempts): Difficulty {
  const attempts = task.outcomes.length;
  const resolved = solvedOf(task);
  const solveRate = resolved / attempts;
  return {
    task: task.task,
    attempts,
    resolved,
    solveRate,
    interval: wilsonInterval(resolved, attempts),
    band: bandOf(solveRate),
  };
}

/** Tasks in each band, every band named. */
export function countByBand(tasks: readonly Pick<Difficulty, "band">[]): Record<Band, number> {
  const counts = Object.fromEntries(BANDS.map((band) => [band, 0])) as Record<Band, number>;
  for (const { band } of tasks) counts[band]++;
  return counts;
}
