/**
 * Owns the images of the kubernetes backend: what a reference stands for is asked of the registry here, once, and pods
 * name it by that digest at the place the site's rewrite rules lead to. The nodes pull it; nothing is stored here.
 */
import { MortiseError } from "@mortise/contracts";
import { defaultsOf, hostPlatform, parseConfig } from "../../images/manifest.js";
import { parseReference } from "../../images/reference.js";
import { defaultDockerConfig } from "../../images/registry/credentials.js";
import { DEFAULT_HTTP } from "../../images/registry/http.js";
import { findInRegistry, type RegistryOptions } from "../../images/registry/registry-source.js";
import { endpointsFor } from "../../images/registry/rewrite.js";
import type { Image, ImageSpec } from "../types.js";

export class ClusterImages {
  readonly #registry: RegistryOptions;
  readonly #hostImage: string | undefined;
  readonly #named = new Map<string, string>();

  constructor(registry: Partial<RegistryOptions>, hostImage: string | undefined) {
    this.#registry = { rewrite: [], http: DEFAULT_HTTP, dockerConfig: defaultDockerConfig(), ...registry };
    this.#hostImage = hostImage;
  }

  async prepare(spec: ImageSpec): Promise<Image> {
    switch (spec.kind) {
      case "registry":
        return this.#find(spec.reference, "registry");
      case "host":
        if (this.#hostImage !== undefined) return this.#find(this.#hostImage, "host");
        throw refused(
          "a task that names no image needs one that has the programs of such tasks.",
          "Set sandbox.kubernetes.hostImage.",
        );
      case "local":
        throw refused(
          `${spec.path}: nodes pull from registries.`,
          "Push the image to a registry and name it there.",
        );
      case "engine":
        throw refused(
          `${spec.name}: nodes pull from registries.`,
          "Push the image to a registry and name it there.",
        );
    }
  }

  /** What a pod's container is given. Throws MORTISE_SANDBOX_SETUP for an image that was not prepared here. */
  nameOf(image: Image): string {
    const name = this.#named.get(image.digest);
    if (name !== undefined) return name;
    throw new MortiseError({
      code: "MORTISE_SANDBOX_SETUP",
      message: `image ${image.digest} is not prepared.`,
    });
  }

  async #find(written: string, kind: "registry" | "host"): Promise<Image> {
    const reference = parseReference(written);
    const found = await findInRegistry(reference, hostPlatform(), this.#registry, undefined);
    const [{ host, repository }] = endpointsFor(reference, this.#registry.rewrite);
    const digest = found.digest.replace("sha256:", "");
    this.#named.set(digest, `${host}/${repository}@${found.digest}`);
    return { digest, kind, defaults: defaultsOf(parseConfig(found.config, written)) };
  }
}

function refused(why: string, fix: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_BACKEND", message: `kubernetes: ${why}`, fix });
}
