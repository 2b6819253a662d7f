/**
 * Owns what the proxy needs to serve one run: its configuration, the checkpoint's tokenizer and template, the
 * call syntax, and its engine. Read from the run's stored configuration, since one proxy serves many runs.
 * Does not hold sessions.
 */
import { MortiseError, type RunConfig, RunRecord } from "@mortise/contracts";
import { type Bus, type Clock, type Log, parseStrict, sleep } from "@mortise/kernel";
import { type Checkpoint, openCheckpoint, type Tokenizer } from "@mortise/policy";
import { Renderer, type ToolFormat, toolFormatOf } from "@mortise/rendering";
import type { Engine } from "./engine/types.js";
import type { WeightsFeed } from "./engine/weights-feed.js";
import type { RenderPool, RunRendering } from "./rendering/render-pool.js";

export interface RunPolicy {
  readonly run: string;
  readonly config: RunConfig;
  readonly tokenizer: Tokenizer;
  readonly renderer: Renderer;
  /** The same renderer, where much is rendered beside the proxy's own thread. */
  readonly rendering: RunRendering;
  /** Undefined: requests with tools are refused. */
  readonly toolFormat: ToolFormat | undefined;
  readonly stopIds: ReadonlySet<number>;
  /** Context and reply together, tokens: the smaller of what the checkpoint and the engine allow. */
  readonly maxPositions: number;
  readonly engine: Engine;
}

export interface RunPoliciesOptions {
  readonly bus: Bus;
  readonly log: Log;
  readonly clock: Clock;
  readonly feed: WeightsFeed;
  readonly renderPool: RenderPool;
  makeEngine(run: string, checkpoint: Checkpoint, config: RunConfig): Engine | Promise<Engine>;
}

const RETRY_AFTER_MS = 500;

export class RunPolicies {
  private readonly options: RunPoliciesOptions;
  private readonly opened = new Map<string, Promise<RunPolicy>>();
  private readonly ready = new Map<string, RunPolicy>();
  /** Resolved once a run's engine has its first weights. */
  private readonly firstLoad = new Map<string, Promise<void>>();
  private readonly stop = new AbortController();

  constructor(options: RunPoliciesOptions) {
    this.options = options;
  }

  /** Policies that are open, for status and metrics. */
  get all(): Iterable<RunPolicy> {
    return this.ready.values();
  }

  /** Opens a run's policy once; the engine starts and follows the run's weights. */
  open(run: string): Promise<RunPolicy> {
    const known = this.opened.get(run);
    if (known) return known;
    const opening = this.load(run);
    this.opened.set(run, opening);
    opening.catch(() => this.opened.delete(run));
    return opening;
  }

  /**
   * A run's policy, when its engine has weights; waits for them `patienceMs` at most.
   * @throws MortiseError MORTISE_PROVIDER_ENGINE (retry) while it has none
   */
  async serving(run: string, patienceMs: number): Promise<RunPolicy> {
    const policy = await this.open(run);
    if (!policy.engine.status().loaded && patienceMs > 0) await this.awaitWeights(run, patienceMs);
    if (policy.engine.status().loaded) return policy;
    throw new MortiseError({
      code: "MORTISE_PROVIDER_ENGINE",
      message: `Run ${run} has no weights yet.`,
      fix: "Ask again: sessions are opened once version 0 is published and loaded.",
      retryAfterMs: RETRY_AFTER_MS,
    });
  }

  private async awaitWeights(run: string, patienceMs: number): Promise<void> {
    const enough = new AbortController();
    await Promise.race([this.firstLoad.get(run), sleep(patienceMs, this.options.clock, enough.signal)]);
    enough.abort();
  }

  async close(): Promise<void> {
    this.stop.abort();
    await Promise.all([...this.ready.values()].map((policy) => policy.engine.close()));
  }

  private async load(run: string): Promise<RunPolicy> {
    const { bus, log, clock, feed, renderPool } = this.options;
    const config = await readRunConfig(bus, run);
    const checkpoint = await openCheckpoint(config.policy.checkpoint);
    const engine = await this.options.makeEngine(run, checkpoint, config);
    const policy = policyOf(config, { checkpoint, engine, renderPool });
    const { history, lateSystem, traits } = policy.renderer;
    log.info({ event: "rendering", run, history, lateSystem, calls: policy.toolFormat?.name, ...traits });
    this.ready.set(run, policy);
    const { signal } = this.stop;
    this.firstLoad.set(
      run,
      new Promise((onLoaded) => {
        const options = { clock, signal, onLoaded };
        if (config.run.mode === "training") void feed.serve(run, policy.engine, options);
        else void feed.pin(run, policy.engine, { ...options, weights: checkpoint.weights });
      }),
    );
    return policy;
  }
}

function policyOf(
  config: RunConfig,
  { checkpoint, engine, renderPool }: { checkpoint: Checkpoint; engine: Engine; renderPool: RenderPool },
): RunPolicy {
  const { tokenizer, chatTemplate, eosIds, tokenizerFiles } = checkpoint;
  const renderer = new Renderer({ chatTemplate, tokenizer, eosIds, policy: config.policy });
  const { tokenizerConfigJson } = tokenizerFiles;
  const source = { files: tokenizerFiles, eosIds, policy: config.policy };
  return {
    run: config.run.id,
    config,
    tokenizer,
    renderer,
    rendering: renderPool.forRun(config.run.id, renderer, source),
    toolFormat: toolFormatOf({ tokenizerConfigJson, tokenizer, renderer, stopIds: eosIds }),
    stopIds: eosIds,
    maxPositions: Math.min(
      checkpoint.config.maxPositions,
      engine.capabilities.maxTokens ?? Number.POSITIVE_INFINITY,
    ),
    engine,
  };
}

async function readRunConfig(bus: Bus, run: string): Promise<RunConfig> {
  const entry = await (await bus.kv("runs")).get(run);
  if (!entry)
    throw new MortiseError({
      code: "MORTISE_OPERATOR_RUN_UNKNOWN",
      message: `KV runs/${run} is empty.`,
      detail: { run },
    });
  const record: unknown = JSON.parse(new TextDecoder().decode(entry.value));
  return parseStrict(RunRecord, record, { source: `KV runs/${run}` }).config;
}
