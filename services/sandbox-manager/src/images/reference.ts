/**
 * Owns image references as people write them, `[registry/]repository[:tag][@digest]`, and their full form.
 * Does not know mirrors.
 */
import { MortiseError } from "@mortise/contracts";

export interface ImageReference {
  /** Host with optional port; `docker.io` where none was written. */
  readonly registry: string;
  readonly repository: string;
  /** What the registry is asked for: a digest wins over a tag. */
  readonly target: string;
  readonly digest: string | undefined;
}

const DEFAULT_REGISTRY = "docker.io";
const HOST = /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?$/;
const REPOSITORY = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const MAX_REFERENCE_CHARACTERS = 512;

/** Throws MORTISE_SANDBOX_IMAGE_REFERENCE. */
export function parseReference(written: string): ImageReference {
  if (written.length > MAX_REFERENCE_CHARACTERS) throw unreadable(written, "it is too long");
  const at = written.indexOf("@");
  const digest = at < 0 ? undefined : written.slice(at + 1);
  if (digest !== undefined && !isDigest(digest))
    throw unreadable(written, "its digest is not sha256:<64 hex digits>");
  const named = at < 0 ? written : written.slice(0, at);
  const colon = named.lastIndexOf(":");
  const hasTag = colon > named.lastIndexOf("/");
  const tag = hasTag ? named.slice(colon + 1) : "latest";
  if (!TAG.test(tag)) throw unreadable(written, "its tag has characters a tag cannot have");
  const { registry, repository } = splitHost(hasTag ? named.slice(0, colon) : named);
  if (!HOST.test(registry)) throw unreadable(written, "its registry is no host name");
  if (!REPOSITORY.test(repository))
    throw unreadable(written, "its repository is not lower-case path segments");
  return { registry, repository, target: digest ?? tag, digest };
}

/** Only a first segment that looks like a host is one: `a/b` is a repository of the default registry. */
function splitHost(path: string): Pick<ImageReference, "registry" | "repository"> {
  const slash = path.indexOf("/");
  const first = slash < 0 ? "" : path.slice(0, slash);
  if (!/[.:]/.test(first) && first !== "localhost") {
    const repository = slash < 0 ? `library/${path}` : path;
    return { registry: DEFAULT_REGISTRY, repository };
  }
  const repository = path.slice(slash + 1);
  if (first !== "docker.io" && first !== "index.docker.io") return { registry: first, repository };
  return {
    registry: DEFAULT_REGISTRY,
    repository: repository.includes("/") ? repository : `library/${repository}`,
  };
}

export function isDigest(value: unknown): value is string {
  return typeof value === "string" && DIGEST.test(value);
}

/** The full form; equal for all spellings of one reference. */
export function formatReference({ registry, repository, target }: ImageReference): string {
  return `${registry}/${repository}${isDigest(target) ? "@" : ":"}${target}`;
}

function unreadable(written: string, why: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_SANDBOX_IMAGE_REFERENCE",
    message: `${JSON.stringify(written.slice(0, 200))}: ${why}.`,
  });
}
