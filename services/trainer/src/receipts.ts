/**
 * Owns what is known of engines: which version each acknowledged, and whether its weights were the published
 * ones. Does not route (the proxy sends turns only to engines that acknowledged).
 */
import { filter, type WeightsManifest, type WeightsReceipt, WeightsRecordSchema } from "@mortise/contracts";
import type { Bus, Following, Log } from "@mortise/kernel";

/** Norms are summed in different orders by different engines; a real change of weights is far larger. */
const CANARY_TOLERANCE = 1e-4;

export class Receipts {
  readonly #manifests = new Map<number, WeightsManifest>();
  readonly #latest = new Map<string, WeightsReceipt>();
  readonly #log: Log;
  #following: Following | undefined;
  #mismatches = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Resolves when the receipts published so far are known. */
  async start(bus: Bus, run: string): Promise<void> {
    this.#following = await bus.follow({
      stream: "WEIGHTS",
      filters: [filter.weights(run)],
      from: "first",
      schema: WeightsRecordSchema,
      onMessage: ({ record }) => {
        if (record.case === "announced") this.#manifests.set(Number(record.value.version), record.value);
        else if (record.case === "receipt") this.#note(record.value);
      },
    });
    await this.#following.caughtUp;
  }

  /** Engines whose last acknowledged version is at least `version`. */
  enginesAt(version: number): number {
    return [...this.#latest.values()].filter((receipt) => Number(receipt.version) >= version).length;
  }

  /** Receipts that named other weights than the published ones. */
  get mismatches(): number {
    return this.#mismatches;
  }

  async stop(): Promise<void> {
    await this.#following?.stop();
  }

  #note(receipt: WeightsReceipt): void {
    this.#latest.set(receipt.engine, receipt);
    const manifest = this.#manifests.get(Number(receipt.version));
    if (!manifest || agrees(manifest, receipt)) return;
    this.#mismatches += 1;
    this.#log.error({
      event: "receipt.mismatch",
      engine: receipt.engine,
      version: Number(receipt.version),
      expected: { sha256: manifest.sha256, canaryNorm: manifest.canaryNorm },
      received: { sha256: receipt.sha256, canaryNorm: receipt.canaryNorm },
    });
  }
}

function agrees(manifest: WeightsManifest, receipt: WeightsReceipt): boolean {
  const gap = Math.abs(manifest.canaryNorm - receipt.canaryNorm);
  return manifest.sha256 === receipt.sha256 && gap <= CANARY_TOLERANCE * Math.max(1, manifest.canaryNorm);
}
