/**
 * Owns images that are already on this host: OCI layouts, and archives of `docker save` with or without one inside.
 * Does not unpack.
 */
import { createHash } from "node:crypto";
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";
import { invalid, type Platform, parseManifest, selectPlatform } from "../manifest.js";
import { parseReference } from "../reference.js";
import { isLayerType } from "../registry/registry-source.js";
import type { FoundImage, LayerBlob } from "../source.js";
import { type LocalFiles, openLocalFiles } from "./local-files.js";

const NAME_KEYS = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];

const LayoutIndex = z.object({
  manifests: z.array(
    z.object({ digest: z.string(), annotations: z.record(z.string(), z.string()).optional() }),
  ),
});
const Saved = z.array(
  z.object({
    Config: z.string(),
    RepoTags: z.array(z.string()).nullish(),
    Layers: z.array(z.string()).max(1000),
  }),
);

/** @param name which image, where there are several. Rejects with MORTISE_SANDBOX_IMAGE_UNKNOWN or _INVALID. */
export async function findLocally(
  place: string,
  name: string | undefined,
  platform: Platform,
): Promise<FoundImage> {
  const files = await openLocalFiles(place);
  const index = await files.read("index.json");
  if (index !== undefined) return fromLayout(files, index, { place, name, platform });
  const saved = await files.read("manifest.json");
  if (saved === undefined) throw invalid(place, "it has neither index.json nor manifest.json");
  return fromSaved(files, saved, { place, name });
}

interface Sought {
  readonly place: string;
  readonly name: string | undefined;
}

async function fromLayout(
  files: LocalFiles,
  index: Buffer,
  { place, name, platform }: Sought & { platform: Platform },
): Promise<FoundImage> {
  const { data } = LayoutIndex.safeParse(jsonOf(index, place));
  if (data === undefined) throw invalid(place, "index.json lists no manifests");
  const names = data.manifests.map(({ annotations }) => NAME_KEYS.flatMap((key) => annotations?.[key] ?? []));
  // Several manifests without a wanted name are one image for several platforms, or cannot be told apart.
  const at = name === undefined && data.manifests.length > 1 ? undefined : chosen(names, name, place);
  const top = at === undefined ? index : await blobOf(files, data.manifests[at]!.digest, place);
  let digest = digestOf(top);
  let manifest = parseManifest(top, place);
  if (manifest.kind === "index") {
    const selected = await blobOf(files, selectPlatform(manifest.manifests, platform, place).digest, place);
    digest = digestOf(selected);
    manifest = parseManifest(selected, place);
  }
  if (manifest.kind === "index") throw invalid(place, "its index names another index");
  const layers = manifest.layers.map((descriptor): LayerBlob => {
    const open = files.open(blobPath(descriptor.digest));
    if (open === undefined) throw invalid(place, `layer ${descriptor.digest} is missing`);
    if (!isLayerType(descriptor.mediaType))
      throw invalid(place, `a layer of type ${JSON.stringify(descriptor.mediaType)} is no file system`);
    return { descriptor, places: [open] };
  });
  return { digest, config: await blobOf(files, manifest.config.digest, place), layers };
}

async function fromSaved(files: LocalFiles, saved: Buffer, { place, name }: Sought): Promise<FoundImage> {
  const { data } = Saved.safeParse(jsonOf(saved, place));
  if (data === undefined) throw invalid(place, "manifest.json is not a list of images");
  const image =
    data[
      chosen(
        data.map(({ RepoTags }) => RepoTags ?? []),
        name,
        place,
      )
    ]!;
  const config = await files.read(image.Config);
  if (config === undefined) throw invalid(place, `configuration ${JSON.stringify(image.Config)} is missing`);
  const layers = image.Layers.map((layer): LayerBlob => {
    const open = files.open(layer);
    if (open === undefined) throw invalid(place, `layer ${JSON.stringify(layer)} is missing`);
    return { descriptor: undefined, places: [open] };
  });
  return { digest: digestOf(config), config, layers };
}

/** Position of the image of this name; of the only one when no name is given. */
function chosen(names: readonly (readonly string[])[], name: string | undefined, place: string): number {
  if (name === undefined && names.length === 1) return 0;
  const same = name === undefined ? -1 : names.findIndex((own) => own.some((one) => isSameName(one, name)));
  if (same >= 0) return same;
  throw new MortiseError({
    code: "MORTISE_SANDBOX_IMAGE_UNKNOWN",
    message: `${place} has ${name === undefined ? "several images" : `no image ${JSON.stringify(name)}`}; names: ${names.flat().join(", ") || "none"}.`,
    fix: "Give one of the names.",
  });
}

function isSameName(one: string, other: string): boolean {
  if (one === other) return true;
  try {
    const [left, right] = [parseReference(one), parseReference(other)];
    return (
      left.registry === right.registry && left.repository === right.repository && left.target === right.target
    );
  } catch {
    // Annotations may hold any text, a bare tag for instance.
    return false;
  }
}

async function blobOf(files: LocalFiles, digest: string, place: string): Promise<Buffer> {
  const bytes = await files.read(blobPath(digest));
  if (bytes === undefined) throw invalid(place, `blob ${digest} is missing`);
  if (digestOf(bytes) !== digest)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_IMAGE_DIGEST",
      message: `${place}: blob ${digest} is ${digestOf(bytes)}.`,
    });
  return bytes;
}

function blobPath(digest: string): string {
  return `blobs/${digest.replace(":", "/")}`;
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

function jsonOf(bytes: Buffer, place: string): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw invalid(place, "its index is not JSON");
  }
}
