/**
 * Owns running token rows of several sequences through the decoder over a paged cache, and choosing a token from
 * the result. Prompt rows and single decode rows are the same thing here. Knows no requests.
 */
import { MortiseError } from "@mortise/contracts";
import type { CounterRandom } from "../counter-random.js";
import type { DecoderConfig } from "../decoder-config.js";
import { Arena } from "../embedded/arena.js";
import { type LayerActivations, Network, PAGE_TOKENS } from "../embedded/network.js";
import { ParameterStore } from "../embedded/parameter-store.js";

/** Consecutive rows of one sequence. */
export interface RowSpan {
  readonly ids: readonly number[];
  /** Position of the first id. */
  readonly position: number;
  /** Page numbers of positions 0 on, the new rows included. */
  readonly pages: readonly number[];
  /** How to choose the token after the last row; undefined when more of the prompt follows. */
  readonly choice: TokenChoice | undefined;
}

export interface TokenChoice {
  /** 0 takes the most likely token. */
  readonly temperature: number;
  readonly random: CounterRandom;
}

export interface ChosenToken {
  readonly id: number;
  /** Log-softmax of logits / temperature at the id; of the plain logits for temperature 0. */
  readonly logp: number;
}

export class DecodePass {
  readonly #arena = new Arena();
  readonly #store: ParameterStore;
  readonly #network: Network;
  readonly #layers: readonly LayerActivations[];
  readonly #stream: number;

  /** @param pages size of the cache @param maxRows most rows of one `run` @param positions longest sequence */
  constructor(
    config: DecoderConfig,
    weights: Uint8Array,
    size: { pages: number; maxRows: number; positions: number },
  ) {
    this.#store = new ParameterStore(this.#arena, config);
    this.#network = new Network(this.#arena, this.#store, config, false);
    this.#network.rotary.reserve(size.positions);
    this.#stream = this.#arena.allocate(size.maxRows * config.hiddenSize);
    const shared = this.#network.allocateActivations(size.maxRows, this.#stream, 0);
    this.#layers = this.#network.layers.map(() => ({
      ...shared,
      pages: this.#arena.allocate(size.pages * this.#network.widths.page),
    }));
    this.load(weights);
  }

  load(weights: Uint8Array): void {
    this.#store.load(this.#store.weights, weights);
    this.#network.version.value++;
  }

  /** Copies the keys and values of a page in every layer. */
  copyPage(from: number, to: number): void {
    const bytes = this.#network.widths.page * 4;
    for (const { pages } of this.#layers)
      this.#arena.copy(pages + to * bytes, pages + from * bytes, bytes / 4);
  }

  /** @returns one entry per span; undefined where `choice` is. */
  run(spans: readonly RowSpan[]): (ChosenToken | undefined)[] {
    return this.#arena.scoped(() => {
      const plan = this.#plan(spans);
      const { embedding, layers, widths } = this.#network;
      this.#arena.kernels.embed(embedding, plan.ids, plan.rows, widths.hidden, this.#stream);
      layers.forEach((layer, i) => {
        this.#network.runLayer(layer, this.#layers[i]!, plan, this.#stream);
      });
      return this.#choose(spans);
    });
  }

  #plan(spans: readonly RowSpan[]) {
    const rows = spans.flatMap((span) => {
      const table = this.#arena.allocateInts(span.pages);
      return span.ids.map((id, i) => ({ id, table, position: span.position + i, pages: span.pages }));
    });
    const ints = (value: (row: (typeof rows)[number]) => number) => this.#arena.allocateInts(rows.map(value));
    return {
      rows: rows.length,
      ids: ints(({ id }) => id),
      positions: ints(({ position }) => position),
      slots: ints(
        ({ position, pages }) =>
          pages[Math.floor(position / PAGE_TOKENS)]! * PAGE_TOKENS + (position % PAGE_TOKENS),
      ),
      tables: ints(({ table }) => table),
      counts: ints(({ position }) => position + 1),
      maxCount: rows.reduce((longest, { position }) => Math.max(longest, position + 1), 0),
    };
  }

  #choose(spans: readonly RowSpan[]): (ChosenToken | undefined)[] {
    const { kernels } = this.#arena;
    const { config, widths, head, finalNorm } = this.#network;
    const { hidden } = widths;
    const lastRows: number[] = [];
    let row = -1;
    for (const { ids, choice } of spans) {
      row += ids.length;
      if (choice !== undefined) lastRows.push(row);
    }
    const count = lastRows.length;
    const compact = this.#arena.allocate(count * hidden);
    kernels.embed(this.#stream, this.#arena.allocateInts(lastRows), count, hidden, compact);
    kernels.rmsNorm(
      compact,
      hidden,
      finalNorm,
      compact,
      hidden,
      count,
      1,
      hidden,
      config.rmsNormEps,
      this.#arena.allocate(count),
    );
    const stride = head.outputStride;
    const logits = this.#arena.allocate(count * stride);
    head.forward(compact, hidden, logits, stride, count);
    let next = 0;
    return spans.map(
      ({ ids, position, choice }) =>
        choice && this.#chooseFrom(logits + next++ * stride * 4, choice, position + ids.length),
    );
  }

  /** The uniform depends on (key, position) alone: the same request gives the same tokens in any batch. */
  #chooseFrom(logits: number, { temperature, random }: TokenChoice, position: number): ChosenToken {
    const { kernels } = this.#arena;
    const { vocabSize } = this.#network.config;
    const stride = this.#network.head.outputStride;
    const [target, logp, entropy, lse] = [0, 1, 2, 3].map(() => this.#arena.allocate(1)) as [
      number,
      number,
      number,
      number,
    ];
    const statistics = (inverseTemperature: number, id: number) => {
      this.#arena.ints(target, 1)[0] = id;
      kernels.tokenStatistics(logits, stride, vocabSize, 1, target, inverseTemperature, logp, entropy, lse);
    };
    statistics(temperature === 0 ? 1 : 1 / temperature, 0);
    const id =
      temperature === 0
        ? kernels.argmaxRow(logits, vocabSize)
        : kernels.sampleRow(
            logits,
            stride,
            vocabSize,
            this.#arena.floats(lse, 1)[0]!,
            random.uniform(position),
          );
    // The logits are scaled by now; a second look gives the log-probability exactly as scoring does.
    statistics(1, id);
    const value = this.#arena.floats(logp, 1)[0]!;
    if (Number.isFinite(value)) return { id, logp: value };
    throw new MortiseError({
      code: "MORTISE_PROVIDER_ENGINE",
      message: `logits at position ${position} are not finite.`,
      fix: "Load weights that are finite: the last training step has destroyed these.",
      detail: { position },
    });
  }
}
