/**
 * Owns what the bus stores: streams, durable consumers, KV and object buckets. The docs table, the
 * bootstrap and the permissions all read this one file. Does no I/O (see `ensureTopology` in the kernel).
 *
 * T1  Nothing is purged by age: retention is by size with `discard new`, so a full store refuses
 *     publishers (admission pauses) and loses nothing.
 * T2  Never a consumer per trial: durables are per service or per run.
 */

export interface StreamDefinition {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly retention: "limits" | "workqueue";
  /** Stored bytes after which publishes are refused. */
  readonly maxBytes: number;
  /** Deduplication window, milliseconds. */
  readonly dedupeMs: number;
  readonly compression: "none" | "s2";
  /** Protobuf message stored, for the docs. */
  readonly message: string;
  readonly purpose: string;
}

export interface ConsumerDefinition {
  readonly stream: string;
  readonly durable: string;
  readonly filter: string;
  /** Milliseconds until an unacknowledged message is delivered again; handlers heartbeat at a third. */
  readonly ackWaitMs: number;
  readonly maxDeliver: number;
  readonly maxAckPending: number;
  readonly purpose: string;
}

export interface KvDefinition {
  readonly bucket: string;
  readonly history: number;
  /** Milliseconds after which an entry not renewed disappears; 0 keeps it. */
  readonly ttlMs: number;
  readonly key: string;
  readonly purpose: string;
}

export interface ObjectDefinition {
  readonly bucket: string;
  readonly name: string;
  readonly purpose: string;
}

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const TEN_MINUTES_MS = 600_000;

export const STREAMS: readonly StreamDefinition[] = [
  {
    name: "CAPTURES",
    subjects: ["mortise.v1.capture.>"],
    retention: "limits",
    maxBytes: 8 * GIB,
    dedupeMs: TEN_MINUTES_MS,
    compression: "s2",
    message: "CaptureRecord",
    purpose: "Turns and seals: the exact tokens of every trial.",
  },
  {
    name: "WORK",
    subjects: ["mortise.v1.work.>"],
    retention: "workqueue",
    maxBytes: 1 * GIB,
    dedupeMs: TEN_MINUTES_MS,
    compression: "none",
    message: "LaunchWork, VerifyWork",
    purpose: "Work queues: launch a trial, verify a trial. Acknowledged = done.",
  },
  {
    name: "REWARDS",
    subjects: ["mortise.v1.reward.>"],
    retention: "limits",
    maxBytes: 1 * GIB,
    dedupeMs: TEN_MINUTES_MS,
    compression: "s2",
    message: "Verdict, Regrade",
    purpose: "Verdicts with per-test results, and later judgements of their evidence.",
  },
  {
    name: "TRIALS",
    subjects: ["mortise.v1.trial.>"],
    retention: "limits",
    maxBytes: 2 * GIB,
    dedupeMs: TEN_MINUTES_MS,
    compression: "s2",
    message: "TrialTransition, SandboxReport",
    purpose: "The scheduler's log of trials, and sandbox facts.",
  },
  {
    name: "GROUPS",
    subjects: ["mortise.v1.group.>"],
    retention: "limits",
    maxBytes: 1 * GIB,
    dedupeMs: TEN_MINUTES_MS,
    compression: "s2",
    message: "GroupRecord",
    purpose: "Decided groups, as references to captures and verdicts.",
  },
  {
    name: "WEIGHTS",
    subjects: ["mortise.v1.weights.>"],
    retention: "limits",
    maxBytes: 256 * MIB,
    dedupeMs: TEN_MINUTES_MS,
    compression: "none",
    message: "WeightsRecord",
    purpose: "Announcements of policy versions and engines' receipts.",
  },
  {
    name: "METRICS",
    subjects: ["mortise.v1.metrics.>"],
    retention: "limits",
    maxBytes: 1 * GIB,
    dedupeMs: TEN_MINUTES_MS,
    compression: "s2",
    message: "MetricsRecord",
    purpose: "Step records with the ledger, evaluations, phases.",
  },
  {
    name: "DLQ",
    subjects: ["mortise.v1.dlq.>"],
    retention: "limits",
    maxBytes: 256 * MIB,
    dedupeMs: TEN_MINUTES_MS,
    compression: "none",
    message: "DeadLetter",
    purpose: "Messages that could not be handled, each with its reason.",
  },
];

/** Durables of services that serve every run. */
export const CONSUMERS: readonly ConsumerDefinition[] = [
  {
    stream: "WORK",
    durable: "launch",
    filter: "mortise.v1.work.*.launch.*",
    ackWaitMs: 30_000,
    maxDeliver: 5,
    maxAckPending: 4096,
    purpose: "sandbox-managers take launches",
  },
  {
    stream: "WORK",
    durable: "verify",
    filter: "mortise.v1.work.*.verify.*",
    ackWaitMs: 30_000,
    maxDeliver: 5,
    maxAckPending: 1024,
    purpose: "verifiers take verifications",
  },
];

/** Durables of one run; their names begin with the run id. */
export function runConsumers(run: string): readonly ConsumerDefinition[] {
  return [
    {
      stream: "GROUPS",
      durable: `${run}_trainer`,
      filter: `mortise.v1.group.${run}.*`,
      ackWaitMs: 60_000,
      maxDeliver: -1,
      maxAckPending: 65_536,
      purpose: "the trainer consumes decided groups; acknowledged after the step is committed",
    },
  ];
}

export const LEASE_TTL_MS = 6_000;
export const PRESENCE_TTL_MS = 9_000;

export const KV_BUCKETS: readonly KvDefinition[] = [
  {
    bucket: "leases",
    history: 1,
    ttlMs: LEASE_TTL_MS,
    key: "{run}.{role}",
    purpose: "Single holders (scheduler, trainer); the revision is the fencing token.",
  },
  {
    bucket: "weights",
    history: 64,
    ttlMs: 0,
    key: "{run}",
    purpose: "The run's current WeightsManifest; written by compare-and-set.",
  },
  {
    bucket: "presence",
    history: 1,
    ttlMs: PRESENCE_TTL_MS,
    key: "{service}.{instance}",
    purpose: "Live service instances with their addresses.",
  },
  { bucket: "runs", history: 8, ttlMs: 0, key: "{run}", purpose: "The resolved configuration of a run." },
];

export const OBJECT_BUCKETS: readonly ObjectDefinition[] = [
  {
    bucket: "weights",
    name: "{run}/{sha256}",
    purpose: "Safetensors of policy versions small enough for the bus.",
  },
  { bucket: "blobs", name: "{sha256}", purpose: "Patches and logs above the inline limit." },
];

/** Content above this size travels as an object. */
export const INLINE_LIMIT_BYTES = 256 * 1024;
