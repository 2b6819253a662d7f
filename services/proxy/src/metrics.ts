/** Owns the metrics of the proxy: names, help, and what a captured turn adds to them. */
import { FinishReason, type Turn, TurnRelation } from "@mortise/contracts";
import type { Metrics } from "@mortise/kernel";
import type { Bodies } from "./front/body.js";
import type { RenderPool } from "./rendering/render-pool.js";
import type { RunPolicies } from "./run-policy.js";
import type { Spool } from "./session/spool.js";
import type { TurnPart } from "./session/stopwatch.js";
import { ENDLESS } from "./session/turn.js";

const SECONDS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300];

/** Counters, as far as they are used here. */
interface Count {
  inc(): void;
}
interface LabelledCount<L extends string> {
  inc(labels: Record<L, string>): void;
}

export interface ProxyMetrics {
  captured(turn: Turn, contextTokens: number, times: ReadonlyMap<TurnPart, number>): void;
  readonly coalesced: LabelledCount<"how">;
  readonly overtaken: Count;
  readonly putAside: Count;
  readonly sealed: Count;
  readonly refused: LabelledCount<"code" | "dialect">;
  readonly undelivered: LabelledCount<"dialect">;
}

export function proxyMetrics(metrics: Metrics): ProxyMetrics {
  const turns = metrics.counter(
    "turns_total",
    "Turns captured, by how they ended, how they hang in the turn tree, and who asked by which protocol.",
    ["finish", "relation", "harness", "dialect"],
  );
  const flags = metrics.counter("alignment_flags_total", "What alignment found worth a flag.", [
    "flag",
    "harness",
  ]);
  const endless = metrics.counter(
    "endless_turns_total",
    "Replies that went round in circles up to their end; many at once after new weights tell of broken ones.",
  );
  const sampled = metrics.counter("sampled_tokens_total", "Tokens sampled and captured.");
  const context = metrics.counter("context_tokens_total", "Context tokens turns were sampled under.");
  const kept = metrics.counter(
    "kept_tokens_total",
    "Of the context tokens, those kept from an earlier turn.",
  );
  const seconds = metrics.histogram("turn_seconds", "From request to journal.", { buckets: SECONDS });
  const parts = metrics.histogram("turn_part_seconds", "Parts of a turn's time.", {
    buckets: SECONDS,
    labels: ["part"],
  });
  return {
    captured(turn: Turn, contextTokens: number, times: ReadonlyMap<TurnPart, number>): void {
      turns.inc({
        finish: FinishReason[turn.finish].toLowerCase(),
        relation: TurnRelation[turn.relation].toLowerCase(),
        harness: turn.harness,
        dialect: turn.dialect,
      });
      for (const flag of turn.flags) flags.inc({ flag, harness: turn.harness });
      if (turn.audit.some(({ what }) => what === ENDLESS)) endless.inc();
      sampled.inc(turn.sampledIds.byteLength / 4);
      context.inc(contextTokens);
      kept.inc(turn.prefixLength);
      for (const [part, ms] of times) parts.observe({ part }, ms / 1000);
      seconds.observe([...times.values()].reduce((sum, ms) => sum + ms, 0) / 1000);
    },
    coalesced: metrics.counter("retries_coalesced_total", "Retries answered without sampling (C6).", ["how"]),
    overtaken: metrics.counter("sessions_overtaken_total", "Appends to the journal that failed (C3)."),
    putAside: metrics.counter(
      "sessions_put_aside_total",
      "Sessions out of memory because nobody called; the journal has them.",
    ),
    sealed: metrics.counter("sessions_sealed_total", "Sessions sealed."),
    refused: metrics.counter("requests_refused_total", "Model requests refused, by error code.", [
      "code",
      "dialect",
    ]),
    undelivered: metrics.counter(
      "replies_undelivered_total",
      "Replies that failed or whose connection ended before their end was delivered.",
      ["dialect"],
    ),
  };
}

/** Values that are read when asked for, not counted. */
export function exposeState(
  metrics: Metrics,
  state: {
    openSessions(): number;
    policies: RunPolicies;
    spool: Spool;
    bodies: Bodies;
    renderPool: RenderPool;
  },
): void {
  const read = (name: string, help: string, value: () => number) => {
    const gauge = metrics.gauge(name, help);
    Object.assign(gauge, { collect: () => gauge.set(value()) });
  };
  read("open_sessions", "Sessions in memory.", state.openSessions);
  read("spool_turns", "Sampled turns that are not on the stream yet.", () => state.spool.turns);
  read("spool_bytes", "Bytes of sampled turns that are not on the stream yet.", () => state.spool.bytes);
  read(
    "body_bytes",
    "Bytes of request bodies that are being read or rendered.",
    () => state.bodies.totalBytes,
  );
  read("large_calls", "Calls at the threads that render, or waiting for one.", () => state.renderPool.size);
  read("active_turns", "Turns at an engine.", () =>
    [...state.policies.all].reduce((sum, policy) => sum + policy.engine.status().activeTurns, 0),
  );
  read(
    "engine_compute_cpu_seconds",
    "CPU time of model compute.",
    () => engineComputeMs(state.policies) / 1000,
  );
}

export function engineComputeMs(policies: RunPolicies): number {
  return [...policies.all].reduce((sum, policy) => sum + policy.engine.status().computeCpuMs, 0);
}
