/**
 * Owns one turn at a vLLM server, put together from the pieces of its stream. Whatever does not fit is an
 * error, never mended: what is returned here is trained on (C1, C10).
 */
import { MortiseError } from "@mortise/contracts";
import { firstDifference } from "../first-difference.js";
import type { Generated, GenerateRequest, RoutedExperts, SampledSpan } from "../types.js";
import { readRoutedExperts } from "./npy.js";
import type { LabelledSpan, Piece } from "./wire.js";

export class TurnInTheMaking {
  private readonly request: GenerateRequest;
  private readonly ids: number[] = [];
  private readonly logProbabilities: (number | null)[] = [];
  private hasLogProbabilities = true;
  private finish: string | undefined;
  private spans: readonly LabelledSpan[] | undefined;
  private routedExperts: RoutedExperts | undefined;

  constructor(request: GenerateRequest) {
    this.request = request;
  }

  add(piece: Piece): void {
    this.checkContext(piece);
    const { ids, logProbabilities } = piece;
    if (logProbabilities && logProbabilities.length !== ids.length)
      throw broken(`${logProbabilities.length} log-probabilities for ${ids.length} ids`);
    if (ids.length > 0 && this.finish !== undefined) throw broken("ids after the end");
    this.ids.push(...ids);
    if (this.ids.length > this.request.maxTokens)
      throw broken(`${this.ids.length} ids where ${this.request.maxTokens} were allowed`);
    if (logProbabilities) this.logProbabilities.push(...logProbabilities);
    else if (ids.length > 0) this.hasLogProbabilities = false;
    this.finish ??= piece.finish;
    this.spans ??= piece.spans;
    if (piece.routedExperts !== undefined)
      this.routedExperts = readRoutedExperts(piece.routedExperts, this.request.routingFrom ?? 0);
    if (ids.length > 0) this.request.onIds?.(ids);
  }

  /**
   * The turn at the stream's end, or as far as it came when the request was aborted.
   * @param askedUnder the version whose cache the turn was given; for servers that report none, that of its ids
   * @param versionOf the policy version of a label; undefined for one that nobody announced
   * @param mayHaveLogProbabilities false when they are not of the distribution that was sampled from
   */
  end(options: {
    askedUnder: number;
    versionOf(label: string): number | undefined;
    mayHaveLogProbabilities: boolean;
  }): Generated {
    const isAborted = this.request.signal.aborted;
    return {
      ids: Int32Array.from(this.ids),
      logProbabilities: options.mayHaveLogProbabilities ? this.packedLogProbabilities() : undefined,
      spans: this.spans ? this.reportedSpans(this.spans, options) : this.oneSpan(options.askedUnder),
      finish: isAborted ? "abort" : this.endReason(),
      routedExperts: isAborted ? undefined : this.checkedRouting(),
    };
  }

  /** A server that samples under other ids than it was given must not be believed. */
  private checkContext({ contextIds, contextLength }: Piece): void {
    const given = this.request.contextIds;
    const difference = contextIds && firstDifference(given, contextIds);
    if (difference) throw broken(`it sampled under another context, ${difference}`);
    if (contextLength !== undefined && contextLength !== given.length)
      throw broken(`it sampled under ${contextLength} ids of context, not ${given.length}`);
  }

  private packedLogProbabilities(): Float32Array | undefined {
    const values = this.logProbabilities;
    const isWhole = this.hasLogProbabilities && values.every((value) => value !== null);
    return isWhole ? Float32Array.from(values as number[]) : undefined;
  }

  private endReason(): "stop" | "length" {
    const { finish, ids, request } = this;
    const stopAt = ids.findIndex((id) => request.stopIds.has(id));
    if (stopAt >= 0 && stopAt < ids.length - 1) throw broken(`it sampled on after the stop id at ${stopAt}`);
    if (finish === "stop") {
      if (stopAt < 0) throw broken(`it stopped at id ${ids.at(-1)}, which ends no turn of this policy`);
      return "stop";
    }
    if (finish === "length") return "length";
    throw broken(finish === undefined ? "the stream ended before the turn" : `the turn ended with ${finish}`);
  }

  private reportedSpans(
    spans: readonly LabelledSpan[],
    { askedUnder, versionOf }: { askedUnder: number; versionOf(label: string): number | undefined },
  ): SampledSpan[] {
    let covered = 0;
    const found = spans.map(({ label, start, end }) => {
      const policyVersion = versionOf(label);
      if (policyVersion === undefined) throw broken(`tokens were sampled under weights "${label}", not ours`);
      if (start !== covered || end <= start) throw broken("version spans have gaps");
      covered = end;
      return { start, length: end - start, policyVersion, isStaleCache: policyVersion !== askedUnder };
    });
    if (covered !== this.ids.length) throw broken(`version spans cover ${covered} of ${this.ids.length} ids`);
    return found;
  }

  private oneSpan(policyVersion: number): SampledSpan[] {
    const length = this.ids.length;
    return length === 0 ? [] : [{ start: 0, length, policyVersion, isStaleCache: false }];
  }

  /** One row a position that went through a forward pass: all but the last sampled id. */
  private checkedRouting(): RoutedExperts | undefined {
    const routing = this.routedExperts;
    if (!routing) return undefined;
    const expected = this.request.contextIds.length + this.ids.length - 1 - routing.start;
    if (routing.shape[0] !== expected) throw broken(`${routing.shape[0]} routing rows, not ${expected}`);
    return routing;
  }
}

function broken(reason: string): MortiseError {
  return new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: `vLLM: ${reason}.` });
}
