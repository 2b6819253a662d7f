/**
 * Owns one invocation from its request to its result: a place, the harness in it, the change, the transcript. Nothing
 * of it is left when it resolves. Does not know who asked or how (front/), nor other invocations.
 */
import {
  type InvocationResult,
  type InvocationStatus,
  RESULT_SCHEMA,
  type StartInvocation,
} from "@mortise/contracts";
import { fromUnknown, type Log } from "@mortise/kernel";
import {
  type ExecResult,
  encodePatch,
  environmentOf,
  type ModelRelay,
  type ShelvedHarness,
} from "@mortise/sandbox-manager";
import { withoutSecrets } from "@mortise/tasks";
import { openForwarder } from "../model-forwarder.js";
import type { AgentPlace, PlaceProvider } from "../place/types.js";

const OUTPUT_TAIL_BYTES = 4096;

export interface PerformTools {
  readonly places: PlaceProvider;
  readonly prepareTimeoutMs: number;
  readonly log: Log;
}

export interface PerformOrder {
  readonly request: StartInvocation;
  readonly signal: AbortSignal;
  readonly onPhase: (phase: InvocationStatus["phase"]) => void;
}

/** Never rejects: what could not be done is a result too. */
export async function perform(order: PerformOrder, tools: PerformTools): Promise<InvocationResult> {
  const { request, signal } = order;
  const times = { prepareMs: 0, agentMs: 0, collectMs: 0 };
  const since = performance.now();
  let forwarder: ModelRelay | undefined;
  let place: AgentPlace | undefined;
  let harness: ShelvedHarness | undefined;
  try {
    order.onPhase("preparing");
    const opened = await openForwarder(request.model);
    forwarder = opened.relay;
    const limit = AbortSignal.timeout(tools.prepareTimeoutMs);
    harness = await tools.places.harness(request.harness);
    place = await tools.places.make({
      request,
      harness,
      modelPort: opened.port,
      signal: AbortSignal.any([signal, limit]),
    });
    const facts = factsOf(request, place);
    await harness.install(place.sandbox, place.image, facts);
    times.prepareMs = performance.now() - since;
    order.onPhase("running");
    const result = await place.sandbox.exec({
      ...harness.command({ ...facts, token: request.model.token }),
      user: request.user,
      timeoutMs: request.limits.timeoutMs,
      signal,
    });
    times.agentMs = result.wallMs;
    order.onPhase("collecting");
    return await collected({ request, place, harness, result, forwarder, times });
  } catch (error) {
    times.prepareMs ||= performance.now() - since;
    return failed(error, order, { harness, place, times, log: tools.log });
  } finally {
    await forwarder?.close();
    await place?.sandbox.destroy().catch((error: unknown) => {
      tools.log.error({ event: "invocation.not-removed", id: request.id, err: error });
    });
  }
}

type Times = InvocationResult["timings"];

function factsOf(request: StartInvocation, { image, modelUrl }: AgentPlace) {
  return {
    model: request.model.name,
    instruction: request.instruction,
    workspace: request.workdir,
    environment: { ...environmentOf(image), ...request.environment },
    user: request.user,
    ...(modelUrl === undefined ? {} : { modelUrl }),
  };
}

async function collected(facts: {
  readonly request: StartInvocation;
  readonly place: AgentPlace;
  readonly harness: ShelvedHarness;
  readonly result: ExecResult;
  readonly forwarder: ModelRelay;
  readonly times: Times;
}): Promise<InvocationResult> {
  const { request, place, harness, result, forwarder, times } = facts;
  const { sandbox, said } = place;
  const since = performance.now();
  const { isUnreachable } = forwarder;
  const { modelTimeMs } = sandbox;
  const { nDenied } = await sandbox.stats();
  await sandbox.quiesce();
  await forwarder.close();
  const secrets = secretsOf(request);
  const hasRun = !["cancelled", "refused", "lost"].includes(result.outcome.kind);
  const { patchFileBytes, patchBytes } = request.limits;
  const patch = hasRun
    ? await sandbox.diff({ maxFileBytes: patchFileBytes, maxTotalBytes: patchBytes })
    : undefined;
  const transcript = hasRun ? await harness.transcript(sandbox, secrets) : undefined;
  const end = harness.ending(result);
  return {
    schema: RESULT_SCHEMA,
    id: request.id,
    outcome: result.outcome,
    end: { kind: end.kind, reason: withoutSecrets(end.reason, secrets) },
    harness: { name: request.harness, version: harness.version },
    outputTail: withoutSecrets(tailOf(result), secrets),
    isModelUnreachable: isUnreachable,
    ...(patch === undefined ? {} : { patch: base64(await encodePatch(patch)) }),
    ...(transcript === undefined
      ? {}
      : { transcript: { ...transcript, archive: base64(transcript.archive) } }),
    usage: { ...result.usage, ...(nDenied === undefined ? {} : { nDenied }) },
    timings: {
      ...times,
      collectMs: performance.now() - since,
      ...(modelTimeMs === undefined ? {} : { modelMs: modelTimeMs }),
    },
    place: said,
  };
}

/** Nothing ran, or its result is gone. */
function failed(
  error: unknown,
  { request, signal }: PerformOrder,
  facts: {
    readonly harness: ShelvedHarness | undefined;
    readonly place: AgentPlace | undefined;
    readonly times: Times;
    readonly log: Log;
  },
): InvocationResult {
  const { harness, place, times, log } = facts;
  const known = fromUnknown(error, "MORTISE_SANDBOX_SETUP", `invocation ${request.id}`);
  log.warn({ event: "invocation.failed", id: request.id, err: known });
  const reason = withoutSecrets(known.message, secretsOf(request));
  const hasRun = times.agentMs > 0;
  const outcome: InvocationResult["outcome"] = signal.aborted
    ? { kind: "cancelled" }
    : hasRun
      ? { kind: "lost", reason }
      : { kind: "refused", reason, code: known.code };
  return {
    schema: RESULT_SCHEMA,
    id: request.id,
    outcome,
    end: { kind: "agent-crash", reason },
    harness: { name: request.harness, version: harness?.version ?? "unknown" },
    outputTail: "",
    isModelUnreachable: false,
    usage: {},
    timings: times,
    ...(place === undefined ? {} : { place: place.said }),
  };
}

function secretsOf({ model, secrets }: StartInvocation): string[] {
  return [model.token, model.listenerKey, ...secrets].filter((secret) => secret !== "");
}

function tailOf({ stdout, stderr }: Pick<ExecResult, "stdout" | "stderr">): string {
  const tail = (bytes: Uint8Array) => Buffer.from(bytes.subarray(-OUTPUT_TAIL_BYTES / 2)).toString("utf8");
  return tail(stdout.bytes) + tail(stderr.bytes);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
