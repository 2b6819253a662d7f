/**
 * Owns the proof that a suite ran, for logs that print failures only: there, no output at all would read as
 * success. Every count must be above zero: a runner that loses its browser still prints `Executed 0 of 0`.
 */
const PROOF =
  /Executed [1-9]\d* of \d|TOTAL: [1-9]\d* (?:SUCCESS|FAILED)|(?:^|\s)[1-9]\d* (?:passing|specs?,)|Tests:\s+(?:\d+ \w+, )*[1-9]\d* (?:passed|total)|Test Suites:\s+(?:\d+ \w+, )*[1-9]\d* total|^# tests [1-9]|': ok$/;
const MAX_PROOF_CHARACTERS = 1_000;

export class SuiteProof {
  isGiven = false;

  line(line: string): void {
    if (!this.isGiven && line.length <= MAX_PROOF_CHARACTERS) this.isGiven = PROOF.test(line);
  }
}
