/**
 * Measures how fast an image gets from a registry, or from disk, to a tree of files: our store against skopeo and
 * umoci, and against `docker load`. They take turns; each begins with nothing of the image, in warm page cache.
 */
import { type ChildProcess, fork, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { ImageStore } from "@mortise/sandbox-manager";
import { median, rounded } from "../proxy/statistics.js";
import { makeSampleImage, type SampleImage } from "./sample-image.js";
import { timed } from "./stand.js";

interface Contestant {
  readonly name: string;
  /** Program that must be there. */
  readonly needs?: string;
  /** Prepares, outside of the time. */
  readonly before?: () => Promise<void>;
  readonly unpack: (into: string) => Promise<void>;
  readonly after?: () => void;
}

const SAVED_NAME = "mortise-bench/image:1";

export async function measureUnpack(directory: string, rounds: number): Promise<object> {
  const image = await makeSampleImage(directory);
  const registry = await serve(image.layout);
  try {
    const rows = [];
    const all = contestants(image, registry.address, directory);
    const times = new Map<string, number[]>(all.map(({ name }) => [name, []]));
    const absent = new Map<string, string>();
    for (let round = 0; round < rounds; round++)
      for (const one of all) {
        const reason = absent.get(one.name) ?? reasonNotToRun(one);
        if (reason !== undefined) absent.set(one.name, reason);
        else times.get(one.name)!.push(await time(one, directory));
      }
    for (const { name } of all) rows.push(row(name, image, times.get(name)!, absent.get(name)));
    return { rounds, layers: image.layers, compressedBytes: image.compressedBytes, bytes: image.bytes, rows };
  } finally {
    registry.process.disconnect();
  }
}

function contestants({ layout }: SampleImage, registry: string, directory: string): Contestant[] {
  const copy = path.join(directory, "copy");
  const saved = path.join(directory, "saved.tar");
  return [
    {
      name: "mortise, registry",
      unpack: (into) => pull(into, { kind: "registry", reference: `${registry}/bench/image:1` }),
    },
    {
      name: "skopeo and umoci, registry",
      needs: "umoci",
      unpack: async (into) => {
        await program("skopeo", [
          "copy",
          "-q",
          "--src-tls-verify=false",
          `docker://${registry}/bench/image:1`,
          `oci:${copy}:bench`,
        ]);
        await program("umoci", ["unpack", "--image", `${copy}:bench`, into]);
      },
    },
    { name: "mortise, layout on disk", unpack: (into) => pull(into, { kind: "local", path: layout }) },
    {
      name: "umoci, layout on disk",
      needs: "umoci",
      before: async () => {
        rmSync(copy, { recursive: true, force: true });
        cpSync(layout, copy, { recursive: true });
      },
      unpack: (into) => program("umoci", ["unpack", "--image", `${copy}:bench`, into]),
    },
    {
      name: "mortise, uncompressed archive on disk",
      needs: "skopeo",
      before: () => save(layout, saved),
      unpack: (into) => pull(into, { kind: "local", path: saved }),
    },
    {
      name: "docker load, uncompressed archive on disk",
      needs: "docker",
      before: async () => {
        await save(layout, saved);
        removeFromDocker();
      },
      unpack: () => program("docker", ["load", "-q", "-i", saved]),
      after: removeFromDocker,
    },
  ];
}

async function save(layout: string, archive: string): Promise<void> {
  rmSync(archive, { force: true });
  await program("skopeo", ["copy", "-q", `oci:${layout}:bench`, `docker-archive:${archive}:${SAVED_NAME}`]);
}

function removeFromDocker(): void {
  spawnSync("docker", ["rmi", "-f", SAVED_NAME], { stdio: "ignore" });
}

async function pull(into: string, place: Parameters<ImageStore["pull"]>[0]): Promise<void> {
  const store = new ImageStore({ directory: into });
  await store.pull(place);
  await store.close();
}

function reasonNotToRun({ needs }: Contestant): string | undefined {
  if (needs === undefined) return undefined;
  const argv = needs === "docker" ? ["version"] : ["--version"];
  for (const name of new Set([needs, "skopeo"]))
    if (spawnSync(name, name === needs ? argv : ["--version"], { stdio: "ignore" }).status !== 0)
      return `${name} is not there or does not answer`;
  return undefined;
}

async function time({ before, unpack, after }: Contestant, directory: string): Promise<number> {
  const into = path.join(directory, "unpacked");
  for (const left of [into, path.join(directory, "copy")]) rmSync(left, { recursive: true, force: true });
  await before?.();
  mkdirSync(directory, { recursive: true });
  const { ms } = await timed(() => unpack(into));
  after?.();
  rmSync(into, { recursive: true, force: true });
  return ms;
}

function row(name: string, image: SampleImage, times: readonly number[], notRun: string | undefined): object {
  if (notRun !== undefined) return { name, notRun };
  const seconds = median(times) / 1000;
  const perSecond = (bytes: number) => rounded(bytes / 1e6 / seconds, 1);
  return {
    name,
    seconds: rounded(seconds),
    secondsByRound: times.map((ms) => rounded(ms / 1000)),
    compressedMBps: perSecond(image.compressedBytes),
    unpackedMBps: perSecond(image.bytes),
  };
}

/** Runs a program that must succeed. */
export function program(name: string, argv: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(name, argv, { stdio: ["ignore", "ignore", "pipe"] });
    let errors = "";
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) =>
      code === 0 ? resolve() : reject(new Error(`${name}: ${errors.slice(-500)}`)),
    );
  });
}

/** A registry in a process of its own, until that is disconnected. */
export async function serve(layout: string): Promise<{ address: string; process: ChildProcess }> {
  const child = fork(new URL("./layout-registry.js", import.meta.url), [layout]);
  const port = await new Promise<number>((resolve, reject) => {
    child.once("message", (message) => resolve(message as number));
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the registry ended with ${code}`)));
  });
  return { address: `127.0.0.1:${port}`, process: child };
}
