/**
 * Owns finding an image in registries: endpoints in order, index to manifest, manifest to layers. An endpoint that
 * does not have the image, cannot be reached or serves wrong bytes is passed over for the next.
 */
import { MortiseError } from "@mortise/contracts";
import { invalid, type ParsedManifest, type Platform, parseManifest, selectPlatform } from "../manifest.js";
import { formatReference, type ImageReference } from "../reference.js";
import type { FoundImage, LayerBlob } from "../source.js";
import { credentialFor } from "./credentials.js";
import type { HttpOptions } from "./http.js";
import { type Document, Repository } from "./repository.js";
import { endpointsFor, type RewriteRule } from "./rewrite.js";

export interface RegistryOptions {
  readonly rewrite: readonly RewriteRule[];
  /** Docker's `config.json`; it need not exist. */
  readonly dockerConfig: string;
  readonly http: HttpOptions;
}

/** Rejects with the last endpoint's error, which is that of the registry itself unless a rule forbids asking it. */
export async function findInRegistry(
  reference: ImageReference,
  platform: Platform,
  options: RegistryOptions,
  signal: AbortSignal | undefined,
): Promise<FoundImage> {
  const repositories = endpointsFor(reference, options.rewrite).map(
    (endpoint) =>
      new Repository(endpoint, () => credentialFor(endpoint.host, options.dockerConfig), options.http),
  );
  return firstOf(repositories, async (repository, later) => {
    const shown = formatReference(reference);
    const { document, manifest } = await resolve(repository, reference.target, platform, shown, signal);
    const config = await repository.document(manifest.config.digest, signal);
    const layers = manifest.layers.map((descriptor): LayerBlob => {
      if (!isLayerType(descriptor.mediaType))
        throw invalid(shown, `a layer of type ${JSON.stringify(descriptor.mediaType)} is no file system`);
      const { digest } = descriptor;
      return {
        descriptor,
        places: [repository, ...later].map((place) => (blobSignal) => place.blob(digest, blobSignal)),
      };
    });
    return { digest: document.digest, config: config.bytes, layers };
  });
}

async function resolve(
  repository: Repository,
  target: string,
  platform: Platform,
  shown: string,
  signal: AbortSignal | undefined,
): Promise<{ document: Document; manifest: Extract<ParsedManifest, { kind: "manifest" }> }> {
  const first = await repository.manifest(target, signal);
  const parsed = parseManifest(first.bytes, shown);
  if (parsed.kind === "manifest") return { document: first, manifest: parsed };
  const selected = selectPlatform(parsed.manifests, platform, shown);
  const document = await repository.manifest(selected.digest, signal);
  const manifest = parseManifest(document.bytes, shown);
  if (manifest.kind === "index") throw invalid(shown, "its index names another index");
  return { document, manifest };
}

/** Tar, with any compression, from any of the vendors; never "foreign" layers that lie elsewhere. */
export function isLayerType(mediaType: string): boolean {
  if (/foreign|nondistributable|encrypted/.test(mediaType)) return false;
  return /^application\/vnd\.(oci\.image\.layer|docker\.image\.rootfs).*tar/.test(mediaType);
}

const PASSED_OVER: ReadonlySet<string> = new Set([
  "MORTISE_SANDBOX_IMAGE_DENIED",
  "MORTISE_SANDBOX_IMAGE_DIGEST",
  "MORTISE_SANDBOX_IMAGE_REGISTRY",
  "MORTISE_SANDBOX_IMAGE_UNKNOWN",
]);

/** Whether another place may have what this one did not give. */
export function isPassedOver(error: unknown): boolean {
  return error instanceof MortiseError && PASSED_OVER.has(error.code);
}

async function firstOf<T>(
  repositories: readonly Repository[],
  attempt: (repository: Repository, later: readonly Repository[]) => Promise<T>,
): Promise<T> {
  let last: unknown;
  for (const [at, repository] of repositories.entries()) {
    try {
      return await attempt(repository, repositories.slice(at + 1));
    } catch (error) {
      if (!isPassedOver(error)) throw error;
      last = error;
    }
  }
  throw last;
}
