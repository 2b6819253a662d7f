/** Owns sizes as old task files write them: a number with K, M, G or T, each 1,024 times the one before. */

/** "4G", "512M", "1.5g", "2GiB". */
export const SIZE = /^\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT])(?:i?B)?\s*$/i;

const MEGABYTES: Readonly<Record<string, number>> = { K: 1 / 1024, M: 1, G: 1024, T: 1024 * 1024 };

/** Whole megabytes, rounded up. Throws for what `SIZE` does not match. */
export function megabytesOf(text: string): number {
  const [, number, unit] = SIZE.exec(text) ?? [];
  if (number === undefined || unit === undefined)
    throw new RangeError(`${JSON.stringify(text)} is not a size`);
  return Math.ceil(Number(number) * MEGABYTES[unit.toUpperCase()]!);
}
