/**
 * Owns what manifests, indexes and configurations say: OCI and Docker schema 2, checked before anything is
 * believed. Does not fetch them.
 */
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";
import { isDigest } from "./reference.js";

/** Asked for in this order; the old schema 1 is not, so that registries convert or refuse. */
export const MANIFEST_TYPES = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.docker.distribution.manifest.v2+json",
] as const;

const Digest = z.string().refine(isDigest, "is not sha256:<64 hex digits>");
const Descriptor = z.object({
  mediaType: z.string().default(""),
  digest: Digest,
  size: z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER),
});
const PlatformOf = z.object({
  os: z.string(),
  architecture: z.string(),
  variant: z.string().optional(),
});
const Manifest = z.object({ config: Descriptor, layers: z.array(Descriptor).max(1000) });
const Index = z.object({
  manifests: z.array(Descriptor.extend({ platform: PlatformOf.optional() })).max(1000),
});
const Strings = z.array(z.string()).nullish();
const Config = z.object({
  os: z.string().default("linux"),
  architecture: z.string().default(""),
  config: z
    .object({
      Env: Strings,
      Entrypoint: Strings,
      Cmd: Strings,
      User: z.string().nullish(),
      WorkingDir: z.string().nullish(),
    })
    .nullish(),
  rootfs: z.object({ diff_ids: z.array(Digest).max(1000) }),
});

export type Descriptor = z.infer<typeof Descriptor>;
export type Platform = z.infer<typeof PlatformOf>;

/** What an image says of itself and how its commands are to be run. */
export interface ImageConfig {
  readonly os: string;
  readonly architecture: string;
  readonly env: readonly string[];
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly user: string;
  readonly workdir: string;
  readonly diffIds: readonly string[];
}

export type ParsedManifest =
  | { readonly kind: "index"; readonly manifests: z.infer<typeof Index>["manifests"] }
  | { readonly kind: "manifest"; readonly config: Descriptor; readonly layers: readonly Descriptor[] };

/** @param source for messages only. Throws MORTISE_SANDBOX_IMAGE_INVALID. */
export function parseManifest(bytes: Uint8Array, source: string): ParsedManifest {
  const json = parseJson(bytes, source);
  if (Array.isArray((json as { manifests?: unknown } | null)?.manifests))
    return { kind: "index", manifests: checked(Index, json, source).manifests };
  if ((json as { schemaVersion?: unknown } | null)?.schemaVersion === 1)
    throw invalid(source, "schemaVersion 1 is not supported");
  return { kind: "manifest", ...checked(Manifest, json, source) };
}

export function parseConfig(bytes: Uint8Array, source: string): ImageConfig {
  const { os, architecture, config, rootfs } = checked(Config, parseJson(bytes, source), source);
  return {
    os,
    architecture,
    env: config?.Env ?? [],
    entrypoint: config?.Entrypoint ?? [],
    cmd: config?.Cmd ?? [],
    user: config?.User ?? "",
    workdir: config?.WorkingDir ?? "",
    diffIds: rootfs.diff_ids,
  };
}

/** What commands in an image start from. */
export function defaultsOf({ env, workdir }: ImageConfig): {
  readonly environment: Readonly<Record<string, string>>;
  readonly workdir?: string;
} {
  const pairs = env.map((line): [string, string] => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
  });
  return { environment: Object.fromEntries(pairs), ...(workdir === "" ? {} : { workdir }) };
}

/** This host's platform in the words of images. */
export function hostPlatform(): Platform {
  const architectures: Record<string, string> = { x64: "amd64", ia32: "386" };
  return { os: "linux", architecture: architectures[process.arch] ?? process.arch };
}

/** The manifest of an index for a platform. Throws MORTISE_SANDBOX_IMAGE_UNKNOWN naming what there is. */
export function selectPlatform(
  manifests: Extract<ParsedManifest, { kind: "index" }>["manifests"],
  wanted: Platform,
  source: string,
): Descriptor {
  const fits = ({ platform }: (typeof manifests)[number]) =>
    platform?.os === wanted.os && platform.architecture === wanted.architecture;
  const found =
    manifests.find((m) => fits(m) && m.platform?.variant === wanted.variant) ??
    (wanted.variant === undefined ? manifests.find(fits) : undefined) ??
    // An index that names no platform has one image, for whoever asks.
    (manifests.length === 1 && manifests[0]!.platform === undefined ? manifests[0] : undefined);
  if (found !== undefined) return found;
  const present = manifests.map(({ platform: p }) => (p === undefined ? "unnamed" : platformName(p)));
  throw new MortiseError({
    code: "MORTISE_SANDBOX_IMAGE_UNKNOWN",
    message: `${source} has no ${platformName(wanted)}; it has: ${present.join(", ") || "nothing"}.`,
  });
}

function platformName({ os, architecture, variant }: Platform): string {
  return [os, architecture, ...(variant === undefined ? [] : [variant])].join("/");
}

function parseJson(bytes: Uint8Array, source: string): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    throw invalid(source, "it is not JSON");
  }
}

function checked<T>(schema: z.ZodType<T>, json: unknown, source: string): T {
  const { success, data, error } = schema.safeParse(json);
  if (success) return data;
  const issue = error.issues[0]!;
  throw invalid(source, `${issue.path.join(".")}: ${issue.message}`);
}

export function invalid(source: string, why: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_IMAGE_INVALID", message: `${source}: ${why}.` });
}
