/**
 * Owns what the store needs of a place images come from. Registries, OCI layouts and saved archives are such places.
 */
import type { Descriptor } from "./manifest.js";

/** Bytes of a blob, opened when read and closed when reading ends. Not yet checked against any digest. */
export type OpenBlob = (signal: AbortSignal | undefined) => AsyncIterable<Uint8Array>;

/** A layer as a source names it. */
export interface LayerBlob {
  /** Undefined where the source states no digest of the blob itself, only the diff id (saved archives). */
  readonly descriptor: Descriptor | undefined;
  /** Where the blob can be had, best first. */
  readonly places: readonly OpenBlob[];
}

/** One image, for one platform. */
export interface FoundImage {
  /** `sha256:<hex>` of the manifest, or of the configuration where there is no manifest. */
  readonly digest: string;
  /** The configuration, checked against its digest. */
  readonly config: Uint8Array;
  /** Lowest first, as in a manifest. */
  readonly layers: readonly LayerBlob[];
}
