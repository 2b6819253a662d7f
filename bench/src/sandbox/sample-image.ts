/**
 * Owns the image that unpacking is measured with: programs and libraries of this host in a few gzip layers, as an OCI
 * layout. Real files of real sizes; made anew for each run, outside of what is timed.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createWriteStream, existsSync, mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";

/** One layer each; what a host has not got is left out. */
const LAYERS = [
  ["usr/sbin", "usr/lib/python3", "usr/lib/node_modules"],
  ["usr/include", "usr/share/doc", "usr/share/perl"],
  ["usr/lib/gcc", "usr/libexec"],
];
const MOST_BYTES = 600 * 1024 * 1024;
const GZIP_LEVEL = 6;

export interface SampleImage {
  /** OCI layout directory; the image's name in it is `bench`. */
  readonly layout: string;
  readonly layers: number;
  readonly compressedBytes: number;
  readonly bytes: number;
}

interface Blob {
  readonly digest: string;
  readonly size: number;
}

export async function makeSampleImage(directory: string): Promise<SampleImage> {
  const layout = path.join(directory, "layout");
  mkdirSync(path.join(layout, "blobs/sha256"), { recursive: true });
  const layers = [];
  for (const parts of LAYERS) {
    const present = parts.filter((part) => existsSync(`/${part}`));
    if (present.length > 0) layers.push(await makeLayer(layout, present));
  }
  const config = put(layout, {
    os: "linux",
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    config: { Env: ["PATH=/usr/bin"] },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
  });
  const manifest = put(layout, {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: { mediaType: "application/vnd.oci.image.config.v1+json", ...config },
    layers: layers.map(({ blob }) => ({
      mediaType: "application/vnd.oci.image.layer.v1.tar+gzip",
      ...blob,
    })),
  });
  writeFileSync(path.join(layout, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  const annotations = { "org.opencontainers.image.ref.name": "bench" };
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  writeFileSync(
    path.join(layout, "index.json"),
    JSON.stringify({ schemaVersion: 2, manifests: [{ mediaType, ...manifest, annotations }] }),
  );
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return {
    layout,
    layers: layers.length,
    compressedBytes: sum(layers.map(({ blob }) => blob.size)),
    bytes: sum(layers.map(({ bytes }) => bytes)),
  };
}

async function makeLayer(layout: string, parts: readonly string[]) {
  const tar = spawn("tar", ["-C", "/", "--one-file-system", "--sort=name", "-c", ...parts], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const file = path.join(layout, "layer");
  const [diff, compressed] = [createHash("sha256"), createHash("sha256")];
  let bytes = 0;
  const counted = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      diff.update(chunk);
      bytes += chunk.byteLength;
      if (bytes > MOST_BYTES) throw new Error(`/${parts.join(", /")} are more than ${MOST_BYTES} bytes`);
      yield chunk;
    }
  };
  const hashed = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      compressed.update(chunk);
      yield chunk;
    }
  };
  await pipeline(tar.stdout, counted, createGzip({ level: GZIP_LEVEL }), hashed, createWriteStream(file));
  const hex = compressed.digest("hex");
  renameSync(file, path.join(layout, "blobs/sha256", hex));
  const size = statSync(path.join(layout, "blobs/sha256", hex)).size;
  return { blob: { digest: `sha256:${hex}`, size }, diffId: `sha256:${diff.digest("hex")}`, bytes };
}

function put(layout: string, document: object): Blob {
  const bytes = Buffer.from(JSON.stringify(document));
  const hex = createHash("sha256").update(bytes).digest("hex");
  writeFileSync(path.join(layout, "blobs/sha256", hex), bytes);
  return { digest: `sha256:${hex}`, size: bytes.byteLength };
}
