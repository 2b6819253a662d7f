/** Owns the check that an assembled trial accounts for every sampled token once (C5). */
import type { AssembledTrial } from "@mortise/capture";
import { expect } from "vitest";

export function expectBalanced({
  sequences,
  sampledTokens,
  trainableTokens,
  exclusions,
}: AssembledTrial): void {
  const masked = sequences.reduce((sum, { mask }) => sum + mask.filter((one) => one === 1).length, 0);
  const excluded = [...exclusions.values()].reduce((sum, tokens) => sum + tokens, 0);
  expect(masked).toBe(trainableTokens);
  expect(trainableTokens + excluded).toBe(sampledTokens);
}
