/**
 * Measures what a task's first sandbox costs when its image is built from a Dockerfile on the spot, against one that
 * was built before and is pulled from a registry, or is there already. Every image is new to the engine and every
 * store empty, but for the last; the base image is at the engine.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ImageBuild } from "@mortise/contracts";
import { createLog } from "@mortise/kernel";
import { clean, DockerBackend, type ImageSpec, RuncBackend, TaskImages } from "@mortise/sandbox-manager";
import { loadTask } from "@mortise/tasks";
import { median, rounded } from "../proxy/statistics.js";
import { NOTHING, run, SandboxStand, timed } from "./stand.js";
import { program, serve } from "./unpack.js";

const FILES = 200;
/** Steps of a few milliseconds each: what is left is what the builder itself takes. */
const STEPS = 5;
/** Of a digest, in the name the docker backend gives the host image. */
const TAG_LENGTH = 16;

export async function measureImageBuild(directory: string, rounds: number): Promise<object> {
  const base = await baseAtEngine(path.join(directory, "base"));
  const times: Record<string, number[]> = { inline: [], ofBuild: [], registry: [], there: [] };
  for (let round = 0; round < rounds; round++) {
    const place = path.join(directory, `round-${round}`);
    const images = imagesFor(path.join(place, "inline/runc"));
    const task = writeTask(path.join(place, "task"), base);
    let archive = "";
    times.inline!.push(
      await firstSandbox(path.join(place, "inline"), async () => {
        const { ms, value } = await timed(() => images.get(task));
        times.ofBuild!.push(ms);
        if (value.kind === "local") archive = value.path;
        return value;
      }),
    );
    const layout = path.join(place, "layout");
    await program("skopeo", ["copy", "-q", `docker-archive:${archive}`, `oci:${layout}:bench`]);
    const registry = await serve(layout);
    const prebuilt = path.join(place, "prebuilt");
    const reference = `${registry.address}/bench/image@${manifestOf(layout)}`;
    const spec = async () => ({ kind: "registry", reference }) as const;
    times.registry!.push(await firstSandbox(prebuilt, spec));
    times.there!.push(await firstSandbox(prebuilt, spec));
    registry.process.disconnect();
    await removeBuilt(path.join(place, "inline/runc"));
    rmSync(place, { recursive: true, force: true });
  }
  const p50 = Object.fromEntries(Object.entries(times).map(([name, all]) => [name, rounded(median(all), 0)]));
  const against = (name: string) => rounded(median(times.inline!) / median(times[name]!), 1);
  return {
    rounds,
    steps: STEPS,
    milliseconds: times,
    p50,
    inlineAgainst: { registry: against("registry"), there: against("there") },
  };
}

/** Programs of this host, imported under an exact tag. */
async function baseAtEngine(stateDirectory: string): Promise<string> {
  const docker = new DockerBackend({ stateDirectory });
  const availability = await docker.availability();
  if (!availability.ok) throw new Error(`building images needs Docker: ${availability.reason}`);
  await docker.start();
  const { digest } = await docker.prepareImage({ kind: "host" });
  await docker.stop();
  return `mortise-host:${digest.slice(0, TAG_LENGTH)}`;
}

function imagesFor(stateDirectory: string): TaskImages {
  mkdirSync(stateDirectory, { recursive: true });
  return new TaskImages({
    backend: "runc",
    stateDirectory,
    site: ImageBuild.parse({}),
    registry: {},
    log: createLog({ service: "bench", level: "error" }),
  });
}

function writeTask(directory: string, base: string): ReturnType<typeof loadTask> {
  const steps = Array.from({ length: STEPS }, (_, at) => `RUN echo ${at} > step-${at}`);
  const unique = `ENV BENCH=${process.pid}.${performance.now()}`;
  const dockerfile = [`FROM ${base}`, unique, "WORKDIR /work", "COPY src src", ...steps].join("\n");
  const sources = Array.from({ length: FILES }, (_, at) => [
    `environment/src/${at}.js`,
    `// ${at}\n`.repeat(200),
  ]);
  const files = Object.fromEntries([
    ["task.toml", ""],
    ["instruction.md", "Nothing.\n"],
    ["tests/test.sh", "exit 0\n"],
    ["environment/Dockerfile", `${dockerfile}\n`],
    ...sources,
  ]) as Record<string, string>;
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), content);
  }
  return loadTask(directory);
}

/** Milliseconds until a first command has ended, from having nothing but the backend. */
async function firstSandbox(place: string, specOf: () => Promise<ImageSpec>): Promise<number> {
  const stand = await SandboxStand.start(
    new RuncBackend({ stateDirectory: path.join(place, "runc"), runc: "runc" }),
  );
  try {
    const { ms } = await timed(async () => {
      const image = await stand.backend.prepareImage(await specOf());
      const sandbox = await stand.create({ image });
      await run(sandbox, NOTHING);
      await sandbox.destroy();
    });
    return ms;
  } finally {
    await stand.stop();
  }
}

function manifestOf(layout: string): string {
  const { manifests } = JSON.parse(readFileSync(path.join(layout, "index.json"), "utf8")) as {
    manifests: { digest: string }[];
  };
  return manifests[0]!.digest;
}

async function removeBuilt(stateDirectory: string): Promise<void> {
  const everything = { maxAgeMs: -1, maxBytes: 0, isDryRun: false, now: Date.now() };
  await clean({ stateDirectory: path.dirname(stateDirectory), runc: "runc", ...everything });
}
