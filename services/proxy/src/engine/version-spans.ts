/** Owns the version spans of one turn in the making: tokens are added, runs of one version are joined (C9). */
import type { SampledSpan } from "./types.js";

export class VersionSpans {
  private readonly spans: SampledSpan[] = [];
  private length = 0;

  get list(): readonly SampledSpan[] {
    return this.spans;
  }

  /** Tokens sampled under `version`. After a change of version the cache holds keys and values of older weights. */
  add(tokens: number, policyVersion: number): void {
    const last = this.spans.at(-1);
    if (last?.policyVersion === policyVersion)
      this.spans[this.spans.length - 1] = { ...last, length: last.length + tokens };
    else
      this.spans.push({
        start: this.length,
        length: tokens,
        policyVersion,
        isStaleCache: last !== undefined,
      });
    this.length += tokens;
  }
}
