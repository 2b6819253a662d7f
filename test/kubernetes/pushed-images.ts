/**
 * Owns giving the kit's images, which are files here, to a cluster, whose nodes pull: each is put into a registry of the
 * tests and named there. The backend itself refuses files, which has a case of its own.
 */
import { createHash } from "node:crypto";
import { KubernetesBackend } from "../../services/sandbox-manager/dist/backend/kubernetes/backend.js";
import type { Image, ImageSpec } from "../../services/sandbox-manager/dist/backend/types.js";
import { findLocally } from "../../services/sandbox-manager/dist/images/local/local-source.js";
import { hostPlatform } from "../../services/sandbox-manager/dist/images/manifest.js";
import type { RegistryServer } from "../../services/sandbox-manager/test/images/registry-server.js";

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const CONFIG = "application/vnd.oci.image.config.v1+json";
const LAYER = "application/vnd.oci.image.layer.v1.tar";

export class PushingBackend extends KubernetesBackend {
  readonly #registry: RegistryServer;

  constructor(options: ConstructorParameters<typeof KubernetesBackend>[0], registry: RegistryServer) {
    super(options);
    this.#registry = registry;
  }

  override async prepareImage(spec: ImageSpec): Promise<Image> {
    if (spec.kind !== "local") return super.prepareImage(spec);
    const reference = await push(this.#registry, spec.path);
    return { ...(await super.prepareImage({ kind: "registry", reference })), kind: "local" };
  }
}

async function push(registry: RegistryServer, path: string): Promise<string> {
  const { config, layers } = await findLocally(path, undefined, hostPlatform());
  const repository = `kit/${createHash("sha256").update(path).digest("hex").slice(0, 12)}`;
  const put = (bytes: Buffer, mediaType: string) => ({
    mediaType,
    digest: registry.put(repository, bytes, mediaType),
    size: bytes.byteLength,
  });
  const described = [];
  for (const layer of layers) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of layer.places[0]!(undefined)) chunks.push(chunk);
    described.push(put(Buffer.concat(chunks), LAYER));
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: put(Buffer.from(config), CONFIG),
    layers: described,
  };
  registry.put(repository, Buffer.from(JSON.stringify(manifest)), MANIFEST, "1");
  return `${registry.host}/${repository}:1`;
}
