/**
 * Owns traces: the tracer of a process, W3C trace context in and out of carriers, and trace ids that follow
 * from what is traced. Does not decide what deserves a span.
 *
 * T1  Trace context crosses every message even where nothing is exported.
 * T2  A trace id derived from an id is the same in every process and after a restart, so that one unit of work
 *     stays one trace whoever continues it.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import {
  type Attributes,
  type Context,
  type ContextManager,
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";

/** Where the trace context lives in NATS headers and gRPC metadata (W3C Trace Context, level 1). */
export const TRACE_PARENT = "traceparent";

const DEFAULT_SAMPLE_RATIO = 0.05;
const TRACE_PARENT_FORMAT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

class AsyncContextManager implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();

  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT;
  }

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    active: Context | null,
    fn: F,
    thisArg?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(active ?? ROOT_CONTEXT, () => fn.apply(thisArg, args));
  }

  bind<T>(bound: Context, target: T): T {
    if (typeof target !== "function") return target;
    const call = target as unknown as (...args: unknown[]) => unknown;
    return ((...args: unknown[]) => this.#storage.run(bound, () => call(...args))) as unknown as T;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    this.#storage.disable();
    return this;
  }
}

let sampleRatio = 0;
let isContextInstalled = false;

export interface TracingOptions {
  readonly service: string;
  /** An OTLP/HTTP traces URL. Without it context is still propagated (T1) and no span is recorded. */
  readonly otlpEndpoint?: string | undefined;
  /** Share of traces that are recorded, 0..1. */
  readonly sampleRatio?: number;
}

/** Starts tracing for this process; the returned function flushes and stops it. */
export function startTracing(options: TracingOptions): () => Promise<void> {
  const isExporting = options.otlpEndpoint !== undefined && options.otlpEndpoint !== "";
  sampleRatio = isExporting ? (options.sampleRatio ?? DEFAULT_SAMPLE_RATIO) : 0;
  installContext();
  const root = isExporting ? new TraceIdRatioBasedSampler(sampleRatio) : new AlwaysOffSampler();
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ "service.name": `mortise-${options.service}` }),
    sampler: new ParentBasedSampler({ root }),
    spanProcessors: isExporting
      ? [new BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url: options.otlpEndpoint! }) })]
      : [],
  });
  trace.setGlobalTracerProvider(provider);
  return () => provider.shutdown();
}

function installContext(): void {
  if (isContextInstalled) return;
  isContextInstalled = true;
  context.setGlobalContextManager(new AsyncContextManager());
}

export function tracer(name: string): Tracer {
  return trace.getTracer(name);
}

/** Runs `fn` in a span that ends with it; a rejection marks the span failed and is passed on. */
export function withSpan<T>(
  name: string,
  attributes: Attributes,
  fn: (span: Span) => Promise<T>,
): Promise<T> {
  return tracer("mortise").startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await fn(span);
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : "error" });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Runs `fn` inside the trace that belongs to `id` (T2), for example `<run>/<trial>`. */
export function withTrace<T>(id: string, fn: () => T): T {
  const digest = createHash("sha256").update(id).digest();
  const isSampled = digest.readUInt32BE(28) / 0x1_0000_0000 < sampleRatio;
  return context.with(
    trace.setSpanContext(ROOT_CONTEXT, {
      traceId: digest.toString("hex", 0, 16),
      spanId: digest.toString("hex", 16, 24),
      traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
      isRemote: true,
    }),
    fn,
  );
}

/** The `traceparent` of the active span, or undefined outside any trace. */
export function currentTraceParent(): string | undefined {
  const active = trace.getSpanContext(context.active());
  if (active === undefined || !isSpanContextValid(active)) return undefined;
  return `00-${active.traceId}-${active.spanId}-0${active.traceFlags & TraceFlags.SAMPLED}`;
}

/** Runs `fn` as a continuation of a received `traceparent`; a missing or malformed one starts outside any trace. */
export function continueTrace<T>(traceParent: string | undefined, fn: () => T): T {
  const remote = traceParent === undefined ? undefined : parseTraceParent(traceParent);
  return remote === undefined ? fn() : context.with(trace.setSpanContext(ROOT_CONTEXT, remote), fn);
}

/** True if the active trace is being recorded: spans outside one cost time and are never seen. */
export function isTraceRecorded(): boolean {
  const active = trace.getSpanContext(context.active());
  return active !== undefined && (active.traceFlags & TraceFlags.SAMPLED) !== 0;
}

function parseTraceParent(text: string): SpanContext | undefined {
  const match = TRACE_PARENT_FORMAT.exec(text);
  if (match === null) return undefined;
  const [, traceId, spanId, flags] = match;
  return { traceId: traceId!, spanId: spanId!, traceFlags: Number.parseInt(flags!, 16), isRemote: true };
}
