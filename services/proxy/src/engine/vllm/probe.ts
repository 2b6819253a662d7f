/**
 * Owns finding out what a vLLM server can do, by asking it: what it is called, whether it takes and gives
 * token ids, and of which distribution its log-probabilities are. Measured where it can be, since a server
 * started with other flags answers just the same.
 */
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";
import { firstDifference } from "../first-difference.js";
import type { EngineCapabilities, GenerateRequest } from "../types.js";
import { completionsWire } from "./completions-wire.js";
import { generateWire } from "./generate-wire.js";
import type { VllmServer } from "./server.js";
import { type Piece, readPiece, type Wire } from "./wire.js";

/** Ids every vocabulary has. */
const PROBE_CONTEXT = Int32Array.of(1, 2, 3);
const PROBE_ALTERNATIVES = 5;
/** Far enough from 1 that a gap divided by it is told from one that is not. */
const PROBE_TEMPERATURE = 0.25;
/** Gaps below this are lost in float32. */
const SMALLEST_GAP = 1e-3;
const PROBABILITY_TOLERANCE = 1e-3;

const Models = z.object({
  data: z.array(z.object({ id: z.string(), max_model_len: z.int().positive().nullish() })).min(1),
});

export interface Probed {
  readonly wire: Wire;
  readonly model: string;
  readonly version: string;
  readonly capabilities: EngineCapabilities;
  /** The label its weights have now, when the server reports labels. */
  readonly label: string | undefined;
  /** Whether it has the control routes that weight updates need. */
  readonly hasControl: boolean;
}

/** @throws MortiseError MORTISE_PROVIDER_ENGINE when the server does not answer or cannot be captured from */
export async function probe(server: VllmServer, wanted: string | undefined): Promise<Probed> {
  const { model, maxTokens } = await findModel(server, wanted);
  const wire = await chooseWire(server);
  const ask = (temperature: number) => probeOnce(server, wire, model, temperature);
  const warm = await ask(1);
  const cold = await ask(PROBE_TEMPERATURE);
  if (warm.ids.length === 0) throw noTokenIds(server, wire);
  if (warm.contextIds === undefined) throw noTokenIds(server, wire);
  const difference = firstDifference(PROBE_CONTEXT, warm.contextIds);
  if (difference) throw server.failure(wire.path, `it did not take the ids it was given: ${difference}`);
  const label = warm.spans?.[0]?.label;
  const paused = await server.get("is_paused");
  const hasControl = paused.status === 200 && label !== undefined;
  return {
    wire,
    model,
    label,
    hasControl,
    version: await versionOf(server),
    capabilities: {
      tokenIds: true,
      logProbabilities: distributionOf(warm, cold),
      routedExperts: warm.routedExperts !== undefined,
      weightVersions: label !== undefined,
      pauseResume: paused.status === 200,
      weightUpdates: false,
      maxTokens,
    },
  };
}

async function findModel(server: VllmServer, wanted: string | undefined) {
  const answer = await server.get("v1/models");
  if (answer.status !== 200) throw server.refused("v1/models", answer);
  const { data } = Models.parse(answer.json);
  const names = data.map((one) => one.id);
  const found =
    wanted === undefined ? (data.length === 1 ? data[0] : undefined) : data.find((one) => one.id === wanted);
  if (!found)
    throw new MortiseError({
      code: "MORTISE_CONFIG_INVALID",
      message: `engine.model ${wanted === undefined ? "is missing" : `= "${wanted}"`}: ${server.url} serves ${names.join(", ")}.`,
      fix: "Set engine.model to one of these names.",
      detail: { field: "engine.model" },
    });
  return { model: found.id, maxTokens: found.max_model_len ?? undefined };
}

/** The token route when the server has it: an empty body is refused there, and unknown elsewhere. */
async function chooseWire(server: VllmServer): Promise<Wire> {
  const { status } = await server.post(generateWire.path);
  return status === 404 || status === 405 || status === 501 ? completionsWire : generateWire;
}

async function versionOf(server: VllmServer): Promise<string> {
  const { json } = await server.get("version");
  return z.object({ version: z.string() }).safeParse(json).data?.version ?? "unknown";
}

/** Everything that one sampled token's events say. */
async function probeOnce(server: VllmServer, wire: Wire, model: string, temperature: number): Promise<Piece> {
  const signal = new AbortController().signal;
  const request: GenerateRequest = {
    affinity: "probe",
    contextIds: PROBE_CONTEXT,
    maxTokens: 1,
    temperature,
    stopIds: new Set(),
    rngKey: "probe",
    turnIndex: 0,
    onIds: undefined,
    signal,
  };
  const body = wire.body({
    request,
    model,
    cacheSalt: undefined,
    seed: 0,
    alternatives: PROBE_ALTERNATIVES,
    echoesContext: true,
  });
  let whole: Partial<Piece> = {};
  for await (const event of server.events(wire.path, body, { signal })) {
    const piece = readPiece(server, wire, event);
    const told = Object.entries(piece).filter(([, value]) => value !== undefined && !isEmpty(value));
    whole = { ...whole, ...Object.fromEntries(told) };
  }
  return { ...NOTHING, ...whole };
}

const NOTHING: Piece = {
  ids: [],
  logProbabilities: undefined,
  alternatives: [],
  finish: undefined,
  contextIds: undefined,
  contextLength: undefined,
  spans: undefined,
  routedExperts: undefined,
};

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/**
 * Two ids keep their distance in log-probability when only the reported numbers, not the sampled ones, ignore
 * temperature; a distribution that was sampled from has the distance divided by temperature. Numbers that no
 * distribution could have are not log-probabilities.
 */
export function distributionOf(warm: Piece, cold: Piece): EngineCapabilities["logProbabilities"] {
  const [a, b] = [warm.alternatives[0], cold.alternatives[0]];
  if (!a || !b || !isDistribution(a) || !isDistribution(b)) return "none";
  const shared = [...a.keys()].filter((id) => b.has(id));
  const gaps = shared.map(
    (id) => [a.get(shared[0]!)! - a.get(id)!, b.get(shared[0]!)! - b.get(id)!] as const,
  );
  const [warmGap, coldGap] = gaps.reduce(
    (widest, gap) => (Math.abs(gap[0]) > Math.abs(widest[0]) ? gap : widest),
    [0, 0] as const,
  );
  if (Math.abs(warmGap) < SMALLEST_GAP) return "none";
  const ratio = coldGap / warmGap;
  const isNear = (value: number) => Math.abs(ratio / value - 1) < 0.1;
  if (isNear(1)) return "raw";
  return isNear(1 / PROBE_TEMPERATURE) ? "processed" : "none";
}

function isDistribution(alternatives: ReadonlyMap<number, number>): boolean {
  const values = [...alternatives.values()];
  const mass = values.reduce((sum, value) => sum + Math.exp(value), 0);
  return values.every((value) => value <= PROBABILITY_TOLERANCE) && mass <= 1 + PROBABILITY_TOLERANCE;
}

function noTokenIds(server: VllmServer, wire: Wire): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_ENGINE",
    message: `vLLM at ${server.url}, ${wire.path}: it gives no token ids.`,
    fix: "Use a vLLM that knows return_token_ids, or start it with --enable-scale-out.",
  });
}
