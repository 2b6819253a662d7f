/**
 * Owns one decoding thread: a BatchDecoder, its turns in flight, and the version spans of what they sample.
 * Runs steps without returning to the event loop while there is work; commands are taken between steps, so
 * weights are never swapped inside one (C9). Knows no text and no session.
 */
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { BatchDecoder, type DecodeHandle, type EndReason } from "@mortise/policy";
import type { SampledSpan } from "./types.js";
import type { FromWorker, ToWorker, TurnProgress, TurnResult, WorkerStart } from "./worker-messages.js";

/** Streamed ids are reported at most this often: far below what a reader notices, far above a decode step. */
const REPORT_INTERVAL_MS = 5;

interface Turn {
  readonly ticket: number;
  readonly isStream: boolean;
  readonly ids: number[];
  readonly logProbabilities: number[];
  readonly spans: { start: number; length: number; policyVersion: number; isStaleCache: boolean }[];
  reported: number;
  handle: DecodeHandle | undefined;
}

const port = parentPort!;
const start = workerData as WorkerStart;
const turns = new Map<number, Turn>();
let decoder: BatchDecoder | undefined;
let version = -1;
let ended: TurnResult[] = [];
let reportedAt = 0;

port.on("message", (message: ToWorker) => {
  handle(message);
  while (decoder && decoder.pending > 0) {
    decoder.step();
    report();
    takeCommands();
  }
  report();
});

function takeCommands(): void {
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
    handle(next.message as ToWorker);
}

function handle(message: ToWorker): void {
  if (message.kind === "weights") loadWeights(message.version, message.safetensors);
  else if (message.kind === "abort") turns.get(message.ticket)?.handle?.abort();
  else submit(message);
}

function loadWeights(next: number, shared: SharedArrayBuffer): void {
  try {
    const weights = new Uint8Array(shared);
    if (decoder) decoder.swapWeights(weights);
    else
      decoder = new BatchDecoder(
        { config: start.config, weights },
        { maxBatch: start.maxBatch, kvTokens: start.cacheTokens },
      );
    version = next;
    send({ kind: "loaded", version });
  } catch (error) {
    send({ kind: "not-loaded", version: next, reason: (error as Error).message });
  }
}

function submit(message: Extract<ToWorker, { kind: "generate" }>): void {
  const { ticket } = message;
  const turn: Turn = {
    ticket,
    isStream: message.isStream,
    ids: [],
    logProbabilities: [],
    spans: [],
    reported: 0,
    handle: undefined,
  };
  turns.set(ticket, turn);
  try {
    turn.handle = decoder!.submit({
      context: message.contextIds,
      maxTokens: message.maxTokens,
      temperature: message.temperature,
      stopIds: new Set(message.stopIds),
      rngKey: message.rngKey,
      onToken: (id, logp, onOlderCache) => take(turn, id, logp, onOlderCache),
      onEnd: (reason) => finish(turn, reason),
    });
  } catch (error) {
    turns.delete(ticket);
    send({ kind: "refused", ticket, reason: (error as Error).message });
  }
}

function take(turn: Turn, id: number, logp: number, isStaleCache: boolean): void {
  const last = turn.spans.at(-1);
  if (last && last.policyVersion === version && last.isStaleCache === isStaleCache) last.length++;
  else turn.spans.push({ start: turn.ids.length, length: 1, policyVersion: version, isStaleCache });
  turn.ids.push(id);
  turn.logProbabilities.push(logp);
}

function finish(turn: Turn, reason: EndReason): void {
  turns.delete(turn.ticket);
  ended.push({
    ticket: turn.ticket,
    ids: Int32Array.from(turn.ids),
    logProbabilities: Float32Array.from(turn.logProbabilities),
    spans: turn.spans as SampledSpan[],
    finish: reason,
  });
}

/** One message for all turns. Ends are reported at once; streamed ids are gathered for a moment. */
function report(): void {
  const now = performance.now();
  if (ended.length === 0 && now - reportedAt < REPORT_INTERVAL_MS) return;
  const streamed: TurnProgress[] = [];
  for (const turn of turns.values()) {
    if (!turn.isStream || turn.reported === turn.ids.length) continue;
    streamed.push({ ticket: turn.ticket, ids: turn.ids.slice(turn.reported) });
    turn.reported = turn.ids.length;
  }
  if (ended.length === 0 && streamed.length === 0) return;
  reportedAt = now;
  send({ kind: "progress", streamed, ended, computeCpuMs: threadCpuMs() });
  ended = [];
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function send(message: FromWorker): void {
  port.postMessage(message);
}
