/** What tests of layers share: unpacking an archive into a fresh directory, and an overlay of several. */
import { lstatSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { mount, unmount } from "../../src/backend/runc/syscalls.js";
import { digestOf, type Member, tar } from "../../src/conformance/tar-builder.js";
import { DEFAULT_LAYER_LIMITS } from "../../src/images/layer/limits.js";
import { type UnpackedLayer, type UnpackOptions, unpackLayer } from "../../src/images/layer/unpack.js";

/** Unpacking keeps owners and makes markers: it needs Linux and root. */
export const isRoot = process.platform === "linux" && process.getuid?.() === 0;

export class Scratch {
  readonly base = mkdtempSync(path.join(tmpdir(), "mortise-images-"));
  readonly #mounts: string[] = [];
  #count = 0;

  directory(): string {
    const made = path.join(this.base, String(++this.#count));
    mkdirSync(made);
    return made;
  }

  async unpack(
    archive: readonly Member[] | Buffer,
    options: Partial<UnpackOptions> & {
      readonly below?: readonly string[];
      readonly bytes?: Uint8Array;
    } = {},
  ): Promise<UnpackedLayer & { directory: string }> {
    const plain = Buffer.isBuffer(archive) ? archive : tar(archive as readonly Member[]);
    const directory = options.directory ?? this.directory();
    const layer = await unpackLayer(chunked(options.bytes ?? plain), {
      directory,
      lower: async () => options.below ?? [],
      diffId: digestOf(plain),
      devices: "skip",
      limits: DEFAULT_LAYER_LIMITS,
      ...options,
    });
    return { ...layer, directory };
  }

  /** A read-only overlay of layers, topmost first. */
  overlay(layers: readonly string[]): string {
    const target = this.directory();
    const lower = layers.length === 1 ? [...layers, this.directory()] : layers;
    mount("overlay", target, "overlay", 1, `lowerdir=${lower.join(":")}`);
    this.#mounts.push(target);
    return target;
  }

  exists(...parts: string[]): boolean {
    return lstatSync(path.join(...parts), { throwIfNoEntry: false }) !== undefined;
  }

  remove(): void {
    for (const target of this.#mounts) unmount(target);
    rmSync(this.base, { recursive: true, force: true });
  }
}

/** Small uneven chunks, so that every boundary falls somewhere. */
export async function* chunked(bytes: Uint8Array, size = 777): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}
