/**
 * Owns what the scheduler hears while it runs: sandbox reports, verdicts, steps, weights and receipts, each turned
 * into a message to the run. Streams are followed from their first message: facts of trials that closed before a
 * restart find no trial and change nothing. Decides nothing.
 */
import { fromBinary } from "@bufbuild/protobuf";
import {
  filter,
  isTaskFault,
  MetricsRecordSchema,
  type SandboxReport,
  SandboxReportSchema,
  VerdictSchema,
  WeightsManifestSchema,
  WeightsRecordSchema,
} from "@mortise/contracts";
import { type Bus, type Following, fromUnknown } from "@mortise/kernel";
import type { RunMessage, TrialFact } from "../run/messages.js";

/** Starts following; resolves when what was stored at the start has been sent. */
export async function followFacts(
  bus: Bus,
  run: string,
  send: (message: RunMessage) => void,
): Promise<Following[]> {
  const from = "first";
  const weights = await bus.kv("weights");
  const followings = await Promise.all([
    weights.watch(run, (_, entry) => {
      if (entry === undefined) return;
      send({ kind: "weights", version: versionOf(run, entry.value) });
    }),
    bus.follow({
      stream: "WEIGHTS",
      filters: [filter.weights(run)],
      from,
      schema: WeightsRecordSchema,
      onMessage: ({ record }) => {
        if (record.case === "receipt") send({ kind: "receipt", version: Number(record.value.version) });
      },
    }),
    bus.follow({
      stream: "METRICS",
      filters: [filter.metrics(run)],
      from,
      schema: MetricsRecordSchema,
      onMessage: ({ record }) => {
        if (record.case === "step") send({ kind: "step", record: record.value });
      },
    }),
    bus.follow({
      stream: "TRIALS",
      filters: [filter.trialSandboxes(run)],
      from,
      schema: SandboxReportSchema,
      onMessage: (report) => {
        const fact = factOf(report);
        if (fact !== undefined) send({ kind: "trial", trial: report.trial, fact });
      },
    }),
    bus.follow({
      stream: "REWARDS",
      filters: [filter.rewards(run)],
      from,
      schema: VerdictSchema,
      onMessage: (verdict) =>
        send({ kind: "trial", trial: verdict.trial, fact: { kind: "judged", verdict } }),
    }),
  ]);
  await Promise.all(followings.map(({ caughtUp }) => caughtUp));
  return followings;
}

function factOf({ fact, lease, stages }: SandboxReport): TrialFact | undefined {
  switch (fact.case) {
    case "prepared":
      return { kind: "prepared", address: fact.value.rpcAddress, lease };
    case "ended": {
      const { termination, patch } = fact.value;
      return { kind: "ended", termination, stages, ...(patch === undefined ? {} : { patch }) };
    }
    case "failed": {
      const { termination, code, reason } = fact.value;
      const named = code === "" ? reason : `${code}: ${reason}`;
      return { kind: "failed", termination, reason: named, isTaskFault: isTaskFault(code), stages };
    }
    default:
      return undefined;
  }
}

/** A manifest that does not decode ends the scheduler: the run cannot know which weights it samples from. */
function versionOf(run: string, manifest: Uint8Array): number {
  try {
    return Number(fromBinary(WeightsManifestSchema, manifest).version);
  } catch (cause) {
    throw fromUnknown(cause, "MORTISE_TRANSPORT_DECODE", `KV weights/${run}`);
  }
}
