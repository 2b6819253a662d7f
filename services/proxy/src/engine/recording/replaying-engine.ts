/**
 * Owns playing a recording again: the same request gets the same ids, log-probabilities and failures, at the
 * recorded times or at once. A request under other ids than the recorded one is refused with the first
 * difference: what was sampled belongs to exactly one context (C1).
 */
import { MortiseError } from "@mortise/contracts";
import { type Clock, parseStrict, sleep, systemClock } from "@mortise/kernel";
import { firstDifference } from "../first-difference.js";
import { readJsonLines } from "../json-lines.js";
import type {
  Engine,
  EngineCapabilities,
  EngineStatus,
  Generated,
  GenerateRequest,
  LoadedWeights,
} from "../types.js";
import {
  generatedOf,
  type RecordedFailure,
  RecordedLine,
  type RecordedTurn,
  RecordingHeader,
} from "./format.js";

type Played = RecordedTurn | RecordedFailure;

/** The recorded turns of one affinity, in the order they ended. */
interface RecordedSession {
  readonly affinity: string;
  readonly turns: Played[];
}

export interface ReplayOptions {
  readonly id: string;
  readonly isTimed: boolean;
  readonly clock?: Clock;
}

export class ReplayingEngine implements Engine {
  readonly id: string;
  readonly capabilities: EngineCapabilities;
  private readonly options: ReplayOptions;
  private readonly clock: Clock;
  private readonly unclaimed: RecordedSession[];
  private readonly claimed = new Map<string, RecordedSession>();
  private loaded: LoadedWeights | undefined;
  private active = 0;
  private sampledTokens = 0;

  private constructor(capabilities: EngineCapabilities, sessions: RecordedSession[], options: ReplayOptions) {
    this.id = options.id;
    this.capabilities = capabilities;
    this.options = options;
    this.clock = options.clock ?? systemClock;
    this.unclaimed = sessions;
  }

  /** @throws MortiseError MORTISE_CONFIG_* naming file, line and field */
  static async open(file: string, options: ReplayOptions): Promise<ReplayingEngine> {
    const [first, ...lines] = await readJsonLines(file, "engine.file");
    const { capabilities } = parseStrict(RecordingHeader, first?.value, { source: first?.source ?? file });
    const sessions = new Map<string, RecordedSession>();
    for (const { source, value } of lines) {
      const line = parseStrict(RecordedLine, value, { source });
      if (line.kind === "weights") continue;
      const { affinity } = line.request;
      const session = sessions.get(affinity) ?? { affinity, turns: [] };
      session.turns.push(line);
      sessions.set(affinity, session);
    }
    const { maxTokens } = capabilities;
    return new ReplayingEngine({ ...capabilities, maxTokens }, [...sessions.values()], options);
  }

  async generate(request: GenerateRequest): Promise<Generated> {
    const turn = this.take(request);
    this.active++;
    try {
      return await this.playTurn(turn, request);
    } finally {
      this.active--;
    }
  }

  async loadWeights(weights: LoadedWeights): Promise<void> {
    this.loaded = { version: weights.version, sha256: weights.sha256 };
  }

  status(): EngineStatus {
    const { loaded, active, sampledTokens } = this;
    return { isServing: true, loaded, activeTurns: active, computeCpuMs: 0, sampledTokens };
  }

  async close(): Promise<void> {}

  /**
   * A session that is new here plays the recorded one of its name, or the first one nobody plays whose first
   * context is its own: trials have other ids in another run.
   */
  private take(request: GenerateRequest): Played {
    const session = this.claimed.get(request.affinity) ?? this.claim(request);
    const at = session.turns.findIndex((turn) => differenceTo(turn, request) === undefined);
    if (at >= 0) return session.turns.splice(at, 1)[0]!;
    const [next] = session.turns;
    if (!next) throw refusal(`the recording of ${session.affinity} has no further turn`);
    throw refusal(`turn ${request.turnIndex}: ${differenceTo(next, request)}`);
  }

  private claim(request: GenerateRequest): RecordedSession {
    const named = this.unclaimed.find(({ affinity }) => affinity === request.affinity);
    const alike = this.unclaimed.find(({ turns }) => differenceTo(turns[0]!, request) === undefined);
    const session = named ?? alike;
    if (!session) {
      const [next] = this.unclaimed;
      if (!next) throw refusal("every recorded session is being played");
      throw refusal(
        `no recorded session begins like this; against ${next.affinity}: ${differenceTo(next.turns[0]!, request)}`,
      );
    }
    this.unclaimed.splice(this.unclaimed.indexOf(session), 1);
    this.claimed.set(request.affinity, session);
    return session;
  }

  private async playTurn(turn: Played, request: GenerateRequest): Promise<Generated> {
    const { ids, endMs } = turn;
    const startedAt = this.clock.now();
    let given = 0;
    const chunks = turn.kind === "turn" ? turn.chunks : [[0, ids.length] as const];
    for (const [atMs, count] of chunks) {
      await this.waitUntil(startedAt + atMs, request.signal);
      if (request.signal.aborted) return cutTo(turn, given);
      request.onIds?.(ids.slice(given, given + count));
      given += count;
    }
    await this.waitUntil(startedAt + endMs, request.signal);
    if (turn.kind === "failure") throw refusal(`the recorded turn failed: ${turn.reason}`);
    this.sampledTokens += ids.length;
    return generatedOf(turn);
  }

  private async waitUntil(time: number, signal: AbortSignal): Promise<void> {
    if (this.options.isTimed) await sleep(time - this.clock.now(), this.clock, signal).catch(() => {});
  }
}

/** What was given before the request was aborted. */
function cutTo(turn: Played, length: number): Generated {
  const whole: Generated =
    turn.kind === "turn"
      ? generatedOf(turn)
      : { ids: Int32Array.from(turn.ids), logProbabilities: undefined, spans: [], finish: "abort" };
  return {
    ids: whole.ids.subarray(0, length),
    logProbabilities: whole.logProbabilities?.subarray(0, length),
    spans: whole.spans.flatMap((span) =>
      span.start < length ? [{ ...span, length: Math.min(span.length, length - span.start) }] : [],
    ),
    finish: "abort",
  };
}

/** In words, what of a request is not as recorded; undefined when it is. */
function differenceTo({ request: recorded }: Played, request: GenerateRequest): string | undefined {
  const ids = firstDifference(recorded.contextIds, request.contextIds);
  if (ids) return `the context differs from the recorded one ${ids}`;
  for (const field of ["turnIndex", "maxTokens", "temperature"] as const)
    if (recorded[field] !== request[field])
      return `${field} is ${request[field]}, recorded ${recorded[field]}`;
  return undefined;
}

function refusal(reason: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_ENGINE",
    message: `Replaying engine: ${reason}.`,
    fix: "Replay against the same checkpoint, harness, task and settings as were recorded.",
  });
}
