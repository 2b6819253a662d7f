/**
 * An engine that plays replies given by the test, under the control of the test: the base of tests without a
 * model. Every reply's log-probabilities are −index/100; a gate holds a reply after some of its ids.
 */
import { MortiseError } from "@mortise/contracts";
import type { Engine, EngineStatus, Generated, GenerateRequest, LoadedWeights } from "../src/engine/types.js";

export interface ScriptedReply {
  readonly ids: readonly number[];
  /** Ids given before waiting for `release`. */
  readonly holdAfter?: number;
  readonly fails?: boolean;
}

interface Held {
  readonly request: GenerateRequest;
  release(): void;
}

export class ScriptedEngine implements Engine {
  readonly id = "scripted";
  readonly requests: GenerateRequest[] = [];
  /** Turns waiting for the test. */
  readonly held: Held[] = [];
  private readonly replies: ScriptedReply[] = [];
  private loaded: LoadedWeights | undefined;

  play(...replies: ScriptedReply[]): void {
    this.replies.push(...replies);
  }

  async generate(request: GenerateRequest): Promise<Generated> {
    this.requests.push(request);
    const reply = this.replies.shift();
    if (!reply || reply.fails)
      throw new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "Scripted failure." });
    const hold = reply.holdAfter ?? reply.ids.length;
    const before = this.loaded!.version;
    request.onIds?.(reply.ids.slice(0, hold));
    if (reply.holdAfter !== undefined) await this.hold(request);
    const isAborted = request.signal.aborted;
    const ids = Int32Array.from(isAborted ? reply.ids.slice(0, hold) : reply.ids);
    const limited = ids.subarray(0, request.maxTokens);
    if (!isAborted && limited.length > hold) request.onIds?.([...limited.subarray(hold)]);
    const isStopped = request.stopIds.has(limited.at(-1)!);
    return {
      ids: limited,
      logProbabilities: Float32Array.from(limited, (_, at) => -at / 100),
      spans: spansOf(limited.length, Math.min(hold, limited.length), before, this.loaded!.version),
      finish: isAborted ? "abort" : isStopped ? "stop" : "length",
    };
  }

  async loadWeights(weights: LoadedWeights): Promise<void> {
    this.loaded = { version: weights.version, sha256: weights.sha256 };
  }

  status(): EngineStatus {
    return { loaded: this.loaded, activeTurns: this.held.length, computeCpuMs: 0, sampledTokens: 0 };
  }

  async close(): Promise<void> {}

  private hold(request: GenerateRequest): Promise<void> {
    return new Promise((resolve) => {
      const held = {
        request,
        release: () => {
          this.held.splice(this.held.indexOf(held), 1);
          resolve();
        },
      };
      this.held.push(held);
      request.signal.addEventListener("abort", held.release, { once: true });
    });
  }
}

/** A swap while the turn was held shows as a second span. */
function spansOf(total: number, hold: number, before: number, after: number) {
  if (before === after) return [{ start: 0, length: total, policyVersion: before, isStaleCache: false }];
  return [
    { start: 0, length: hold, policyVersion: before, isStaleCache: false },
    { start: hold, length: total - hold, policyVersion: after, isStaleCache: true },
  ].filter((span) => span.length > 0);
}
