/**
 * Owns contents by digest in the archive: each is stored once per run, and only if its bytes have the digest.
 * Does not decide which contents a message has.
 */
import { createHash } from "node:crypto";
import { access } from "node:fs/promises";
import { type Content, MortiseError } from "@mortise/contracts";
import { dispositionOf, type Log, type Objects, retry } from "@mortise/kernel";
import { writeDurably } from "./durable-file.js";
import { blobPath } from "./layout.js";

const SHA256 = /^[0-9a-f]{64}$/;
const RETRY = { attempts: Infinity, baseMs: 200, maxMs: 10_000 };

export interface BlobStoreOptions {
  readonly directory: string;
  readonly objects: Objects;
  readonly log: Log;
  readonly signal: AbortSignal;
  onMissing(): void;
}

export class BlobStore {
  readonly #o: BlobStoreOptions;

  constructor(options: BlobStoreOptions) {
    this.#o = options;
  }

  /** Archives an inline or stored content. */
  async keep(run: string, content: Content): Promise<void> {
    if (content.place.case === "object") await this.keepObject(run, content.place.value);
    if (content.place.case === "inline")
      await this.#write(run, digestOf(content.place.value), content.place.value);
  }

  /**
   * Archives the object named by its digest. One that is gone or has other bytes is counted and logged, not waited
   * for: the row that names it stays and says what is missing (C10).
   */
  async keepObject(run: string, name: string): Promise<void> {
    if (!SHA256.test(name) || (await exists(blobPath(this.#o.directory, run, name)))) return;
    try {
      const bytes = await retry(() => this.#o.objects.get(name), {
        ...RETRY,
        signal: this.#o.signal,
        isRetryable: (error) => dispositionOf(error) === "retry",
      });
      await this.#write(run, name, bytes);
    } catch (error) {
      if (!(error instanceof MortiseError) || error.disposition === "retry") throw error;
      if (error.code === "MORTISE_OPERATOR_DISK_FULL") throw error;
      this.#o.onMissing();
      this.#o.log.error({ event: "archive.blob-missing", run, name, err: error });
    }
  }

  async #write(run: string, sha256: string, bytes: Uint8Array): Promise<void> {
    const path = blobPath(this.#o.directory, run, sha256);
    if (digestOf(bytes) !== sha256) {
      throw new MortiseError({
        code: "MORTISE_TRANSPORT_DECODE",
        message: `object ${sha256} has other bytes.`,
      });
    }
    if (!(await exists(path))) await writeDurably(path, bytes);
  }
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
