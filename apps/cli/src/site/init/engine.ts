/**
 * Owns the engine of a new run file: the built-in decoder, vLLM servers by their addresses, or a script file. A server
 * is asked for what it serves; whether it gives token ids is measured by the proxy when a run begins.
 */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { wrong } from "../refusal.js";

const FLAG = "--engine";
const ASK_TIMEOUT_MS = 10_000;
const MODELS = z.object({ data: z.array(z.object({ id: z.string() })).min(1) });

export type RunEngine =
  | { readonly kind: "embedded" }
  | { readonly kind: "vllm"; readonly urls: readonly string[]; readonly model: string }
  | { readonly kind: "scripted"; readonly file: string };

/**
 * @param given `embedded`, base URLs separated by commas, or the path of a script
 * @param model name the servers serve the policy under; needed when they serve several
 */
export async function chooseEngine(given: string, model: string | undefined): Promise<RunEngine> {
  if (given === "embedded") return { kind: "embedded" };
  if (/^https?:/.test(given)) {
    const urls = given.split(",").map(baseUrl);
    const served = await Promise.all(urls.map(modelsAt));
    return { kind: "vllm", urls, model: chosenModel(urls, served, model) };
  }
  const file = resolve(given);
  if (statSync(file, { throwIfNoEntry: false })?.isFile()) return { kind: "scripted", file };
  throw wrong(
    FLAG,
    `${given} is neither "embedded", nor an address, nor a file.`,
    "Give embedded, the base URL of a vLLM server (http://host:8000), or a script file: docs/engines.md.",
  );
}

/** Servers are named without /v1, which people copy along. */
function baseUrl(text: string): string {
  if (!URL.canParse(text)) throw wrong(FLAG, `${text} is no address.`, "Give it as http://host:port.");
  return text.replace(/\/+$/, "").replace(/\/v1$/, "");
}

async function modelsAt(url: string): Promise<string[]> {
  const key = process.env.MORTISE_ENGINE_KEY;
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  let answer: Response;
  try {
    answer = await fetch(`${url}/v1/models`, { headers, signal: AbortSignal.timeout(ASK_TIMEOUT_MS) });
  } catch (error) {
    const { cause, message } = error as Error;
    throw unusable(url, `nothing answers there (${cause instanceof Error ? cause.message : message})`);
  }
  if (answer.status === 401 || answer.status === 403)
    throw unusable(url, `it refuses the key (status ${answer.status}); MORTISE_ENGINE_KEY holds it`);
  const body = MODELS.safeParse(await answer.json().catch(() => undefined));
  if (!answer.ok || !body.success)
    throw unusable(url, `/v1/models does not list models (status ${answer.status})`);
  return body.data.data.map(({ id }) => id);
}

function unusable(url: string, reason: string) {
  return wrong(
    FLAG,
    `${url}: ${reason}.`,
    "Start a vLLM server there, as docs/engines.md says, or correct the address.",
  );
}

function chosenModel(
  urls: readonly string[],
  served: readonly (readonly string[])[],
  wanted: string | undefined,
): string {
  for (const [at, names] of served.entries()) {
    if (wanted === undefined ? names.length === 1 : names.includes(wanted)) continue;
    const problem = wanted === undefined ? "serves several models" : `does not serve ${wanted}`;
    throw wrong("--model", `${urls[at]} ${problem}: ${names.join(", ")}.`, "Give --model with one of these.");
  }
  const names = new Set(served.map(([name]) => wanted ?? name!));
  if (names.size === 1) return [...names][0]!;
  throw wrong(
    "--model",
    `the servers serve different models: ${[...names].join(", ")}.`,
    "They have to serve one.",
  );
}
