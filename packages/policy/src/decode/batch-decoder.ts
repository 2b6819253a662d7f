/**
 * Owns continuous batching: requests join and leave between steps, prompts are computed in portions beside running
 * decodes, and known prefixes are taken from the cache. Synchronous; made to be driven by a worker thread's loop.
 * Does not know policy versions, text or messages.
 *
 *   D1  What a request samples depends on (weights, context, temperature, rngKey) and not on its neighbours.
 *   D2  A request is admitted only when its longest possible sequence fits beside those already admitted, so an
 *       admitted request never waits for memory.
 */
import { MortiseError } from "@mortise/contracts";
import { CounterRandom } from "../counter-random.js";
import type { DecoderConfig } from "../decoder-config.js";
import { PAGE_TOKENS } from "../embedded/network.js";
import { DecodePass, type RowSpan, type TokenChoice } from "./decode-pass.js";
import { type KvPage, KvTree } from "./kv-tree.js";

export type EndReason = "stop" | "length" | "abort";

export interface DecodeRequest {
  /** Prompt and history, at least one id. */
  readonly context: Int32Array;
  /** At least 1. context.length + maxTokens must not exceed `BatchDecoder.maxSequence`. */
  readonly maxTokens: number;
  /** Divides logits; 0 decodes greedily. */
  readonly temperature: number;
  /** A sampled id of this set is delivered and ends the request. */
  readonly stopIds: ReadonlySet<number>;
  /** With the position, selects the uniform of each draw. */
  readonly rngKey: string;
  /** @param onOlderCache true when some keys and values behind this token come from earlier weights (C9) */
  onToken(id: number, logp: number, onOlderCache: boolean): void;
  onEnd(reason: EndReason): void;
}

export interface DecodeHandle {
  /** Ends the request before the next step; nothing after it ended. */
  abort(): void;
}

export interface DecoderLimits {
  /** Sequences decoded at once. */
  readonly maxBatch: number;
  /** Tokens the key-value cache holds, running and remembered together. */
  readonly kvTokens: number;
  /** Prompt tokens computed in one step beside the decodes. Default 512. */
  readonly prefillTokens?: number;
}

interface Sequence {
  readonly request: DecodeRequest;
  readonly choice: TokenChoice;
  /** Context and sampled ids. */
  readonly ids: number[];
  readonly pages: KvPage[];
  /** Leading ids whose keys and values exist. */
  computed: number;
  /** Has waited a step for a prefix that another sequence was computing. */
  waited: boolean;
  ended: boolean;
}

const DEFAULT_PREFILL_TOKENS = 512;

function refuse(field: string, message: string, fix: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_BAD_REQUEST",
    message: `${field}: ${message}`,
    fix,
    detail: { field },
  });
}

export class BatchDecoder {
  /** Longest context + maxTokens that can be asked for. */
  readonly maxSequence: number;
  readonly #config: DecoderConfig;
  readonly #maxBatch: number;
  readonly #prefillTokens: number;
  readonly #pass: DecodePass;
  readonly #tree: KvTree;
  readonly #waiting: Sequence[] = [];
  #active: Sequence[] = [];
  #reusedTokens = 0;

  constructor(
    model: { readonly config: DecoderConfig; readonly weights: Uint8Array },
    limits: DecoderLimits,
  ) {
    this.#config = model.config;
    this.#maxBatch = limits.maxBatch;
    this.#prefillTokens = limits.prefillTokens ?? DEFAULT_PREFILL_TOKENS;
    this.#tree = new KvTree(Math.floor(limits.kvTokens / PAGE_TOKENS));
    this.maxSequence = Math.min(this.#tree.capacity * PAGE_TOKENS, model.config.maxPositions);
    this.#pass = new DecodePass(model.config, model.weights, {
      pages: this.#tree.capacity,
      maxRows: this.#maxBatch + this.#prefillTokens,
      positions: this.maxSequence,
    });
  }

  /** Context tokens taken from the cache instead of being computed, since the start. */
  get reusedTokens(): number {
    return this.#reusedTokens;
  }

  /** Requests that have not ended. */
  get pending(): number {
    return this.#waiting.length + this.#active.length;
  }

  /** Queues a request; its callbacks run inside `step`. @throws MortiseError when it can never be served. */
  submit(request: DecodeRequest): DecodeHandle {
    this.#check(request);
    const choice = { temperature: request.temperature, random: new CounterRandom(request.rngKey) };
    const sequence: Sequence = {
      request,
      choice,
      ids: [...request.context],
      pages: [],
      computed: 0,
      waited: false,
      ended: false,
    };
    this.#waiting.push(sequence);
    return { abort: () => this.#abort(sequence) };
  }

  #check({ context, maxTokens, temperature }: DecodeRequest): void {
    const { vocabSize } = this.#config;
    if (context.length === 0) throw refuse("context", "is empty.", "Send at least one token.");
    const bad = context.findIndex((id) => id < 0 || id >= vocabSize);
    if (bad >= 0)
      throw refuse(
        "context",
        `id ${context[bad]} at ${bad} is outside the vocabulary of ${vocabSize}.`,
        "Use this policy's tokenizer.",
      );
    if (!Number.isInteger(maxTokens) || maxTokens < 1)
      throw refuse("maxTokens", `is ${maxTokens}.`, "Ask for at least one token.");
    if (!Number.isFinite(temperature) || temperature < 0)
      throw refuse("temperature", `is ${temperature}.`, "Use 0 or more.");
    if (context.length + maxTokens > this.maxSequence) {
      throw new MortiseError({
        code: "MORTISE_PROVIDER_CONTEXT_LENGTH",
        message: `context (${context.length}) + maxTokens (${maxTokens}) is above ${this.maxSequence}.`,
        detail: { field: "maxTokens" },
      });
    }
  }

  #abort(sequence: Sequence): void {
    if (sequence.ended) return;
    const queued = this.#waiting.indexOf(sequence);
    if (queued >= 0) this.#waiting.splice(queued, 1);
    this.#end(sequence, "abort");
  }

  /** Pages a sequence may come to need (D2). */
  #reserve({ request }: Sequence): number {
    return Math.ceil((request.context.length + request.maxTokens) / PAGE_TOKENS);
  }

  #admit(): void {
    let reserved = this.#active.reduce((sum, sequence) => sum + this.#reserve(sequence), 0);
    while (this.#waiting.length > 0 && this.#active.length < this.#maxBatch) {
      reserved += this.#reserve(this.#waiting[0]!);
      if (reserved > this.#tree.capacity) return;
      this.#active.push(this.#waiting.shift()!);
    }
  }

  /** One forward pass: a token for every sequence whose prompt is done. @returns sequences still active or waiting */
  step(): number {
    this.#admit();
    const scheduled: Sequence[] = [];
    const spans: RowSpan[] = [];
    let budget = this.#prefillTokens;
    for (const sequence of this.#active) {
      if (!this.#reusePrefix(sequence)) continue;
      const missing = sequence.ids.length - sequence.computed;
      const count = missing === 1 ? 1 : Math.min(missing, budget);
      if (count === 0) continue;
      if (missing > 1) budget -= count;
      spans.push(this.#schedule(sequence, count));
      scheduled.push(sequence);
    }
    if (spans.length > 0) {
      const chosen = this.#pass.run(spans);
      for (const sequence of scheduled) for (const page of sequence.pages) page.ready = page.ids.length;
      scheduled.forEach((sequence, i) => {
        const token = chosen[i];
        if (token !== undefined) this.#deliver(sequence, token.id, token.logp);
      });
    }
    return this.pending;
  }

  /**
   * Takes over what the cache knows of the prompt. The last id is always computed: its logits are needed.
   * @returns false when it is better to wait one step for a prefix that is being computed right now
   */
  #reusePrefix(sequence: Sequence): boolean {
    const { ids, pages } = sequence;
    while (sequence.computed % PAGE_TOKENS === 0 && ids.length - sequence.computed > 1) {
      const wanted = ids.slice(sequence.computed, Math.min(sequence.computed + PAGE_TOKENS, ids.length - 1));
      const match = this.#tree.match(pages.at(-1), wanted);
      if (match === undefined) return true;
      if (match.common === PAGE_TOKENS) {
        this.#tree.hold(match.page);
        pages.push(match.page);
        this.#advance(sequence, PAGE_TOKENS);
        continue;
      }
      if (match.common > match.page.ready && !sequence.waited) {
        sequence.waited = true;
        return false;
      }
      this.#copyPartly(sequence, match.page, Math.min(match.common, match.page.ready));
      return true;
    }
    return true;
  }

  /** A page that is not full, or goes on differently, is copied as far as it agrees (K1, K2). */
  #copyPartly(sequence: Sequence, source: KvPage, common: number): void {
    if (common === 0) return;
    const ids = source.ids.slice(0, common);
    this.#tree.hold(source); // so that making room cannot take it
    if (!this.#tree.hasRoom()) {
      this.#tree.release([source]);
      return;
    }
    const page = this.#tree.create(sequence.pages.at(-1));
    this.#pass.copyPage(source.index, page.index);
    this.#tree.release([source]);
    page.ids.push(...ids);
    page.ready = common;
    sequence.pages.push(page);
    this.#advance(sequence, common);
  }

  #advance(sequence: Sequence, count: number): void {
    sequence.computed += count;
    this.#reusedTokens += count;
  }

  /** Gives the next `count` ids their places in pages. A full page may be shared at once: its rows are in this pass. */
  #schedule(sequence: Sequence, count: number): RowSpan {
    const { ids, pages, choice } = sequence;
    const position = sequence.computed;
    for (let t = position; t < position + count; t++) {
      if (t % PAGE_TOKENS === 0) pages.push(this.#tree.create(pages.at(-1)));
      pages.at(-1)!.ids.push(ids[t]!);
    }
    sequence.computed += count;
    return {
      ids: ids.slice(position, sequence.computed),
      position,
      pages: pages.map(({ index }) => index),
      choice: sequence.computed === ids.length ? choice : undefined,
    };
  }

  #deliver(sequence: Sequence, id: number, logp: number): void {
    if (sequence.ended) return;
    const { request, ids, pages } = sequence;
    ids.push(id);
    request.onToken(
      id,
      logp,
      pages.some(({ generation }) => generation !== this.#tree.generation),
    );
    if (sequence.ended) return; // aborted from the callback
    if (request.stopIds.has(id)) this.#end(sequence, "stop");
    else if (ids.length - request.context.length >= request.maxTokens) this.#end(sequence, "length");
  }

  #end(sequence: Sequence, reason: EndReason): void {
    sequence.ended = true;
    this.#active = this.#active.filter((other) => other !== sequence);
    this.#tree.release(sequence.pages);
    sequence.request.onEnd(reason);
  }

  /**
   * Replaces the weights between steps. Running requests go on over their keys and values, and their later tokens
   * are marked; remembered prefixes are dropped. @throws MortiseError, with the old weights in place, when invalid.
   */
  swapWeights(safetensors: Uint8Array): void {
    this.#pass.load(safetensors);
    this.#tree.invalidate();
  }
}
