/**
 * Owns writing an image as the archive `docker load` takes, whatever form it is kept in here. Streams: one layer's
 * chunk is in memory at a time. The engine checks every layer against the configuration's diff ids.
 */
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { type Pack, pack } from "tar-stream";
import type { FoundImage, LayerBlob } from "../../images/source.js";

/** @param name repository and tag the image gets */
export function savedArchive(image: FoundImage, name: string): Readable {
  const archive = pack();
  write(archive, image, name).then(
    () => archive.finalize(),
    (error: Error) => archive.destroy(error),
  );
  return archive as unknown as Readable;
}

async function write(archive: Pack, image: FoundImage, name: string): Promise<void> {
  const layers = image.layers.map((_, at) => `${at}/layer.tar`);
  for (const [at, layer] of image.layers.entries()) {
    const size = layer.descriptor?.size ?? (await sizeOf(layer));
    const entry = archive.entry({ name: layers[at]!, size }) as unknown as Writable;
    for await (const chunk of open(layer)) if (!entry.write(chunk)) await once(entry, "drain");
    entry.end();
    await once(entry, "finish");
  }
  archive.entry({ name: "config.json" }, Buffer.from(image.config));
  const manifest = [{ Config: "config.json", RepoTags: [name], Layers: layers }];
  archive.entry({ name: "manifest.json" }, JSON.stringify(manifest));
}

function open(layer: LayerBlob): AsyncIterable<Uint8Array> {
  return layer.places[0]!(undefined);
}

/** A saved archive does not say; a header must, before the content. */
async function sizeOf(layer: LayerBlob): Promise<number> {
  let size = 0;
  for await (const chunk of open(layer)) size += chunk.byteLength;
  return size;
}
