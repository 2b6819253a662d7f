/**
 * Owns creating what the bus stores, from definitions. Does not contain any definition (contracts).
 * Idempotent: an equal definition is left alone, one that differs in what may change is updated, one that
 * differs in what may not is refused before anything is written to it.
 */
import {
  type ConsumerDefinition,
  type KvDefinition,
  MortiseError,
  type ObjectDefinition,
  type StreamDefinition,
} from "@mortise/contracts";
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiError,
  ReplayPolicy,
  RetentionPolicy,
  StorageType,
  StoreCompression,
  type StreamConfig,
} from "@nats-io/jetstream";
import type { Bus } from "./bus.js";
import { busError, isNotFound, patiently } from "./failure.js";

export interface Topology {
  readonly streams?: readonly StreamDefinition[];
  readonly consumers?: readonly ConsumerDefinition[];
  readonly kv?: readonly KvDefinition[];
  readonly objects?: readonly ObjectDefinition[];
  /** Copies of every stream; 1 on a single server. */
  readonly replicas?: number;
}

type NewStream = Partial<StreamConfig> & Pick<StreamConfig, "name">;

const NANOS_PER_MS = 1_000_000;
/** Shortest lifetime the server accepts for the tombstone of an expired entry. */
const MIN_MARKER_MS = 1_000;
/** Retention and storage of a stream that holds messages cannot be exchanged under its readers. */
const FIXED_FIELDS = ["retention", "storage"] as const;

/** Throws MORTISE_TRANSPORT_TOPOLOGY naming the stream or consumer and the field. */
export async function ensureTopology(bus: Bus, topology: Topology): Promise<void> {
  const replicas = topology.replicas ?? 1;
  const streams = [
    ...(topology.streams ?? []).map(streamConfig),
    ...(topology.kv ?? []).map(kvConfig),
    ...(topology.objects ?? []).map(objectConfig),
  ];
  for (const config of streams) await ensureStream(bus, { ...config, num_replicas: replicas });
  for (const definition of topology.consumers ?? []) await ensureConsumer(bus, definition);
}

function streamConfig(definition: StreamDefinition): NewStream {
  return {
    name: definition.name,
    description: definition.purpose,
    subjects: [...definition.subjects],
    retention: definition.retention === "workqueue" ? RetentionPolicy.Workqueue : RetentionPolicy.Limits,
    storage: StorageType.File,
    // A full stream refuses publishers, so that admission pauses and nothing is lost.
    discard: DiscardPolicy.New,
    max_bytes: definition.maxBytes,
    duplicate_window: definition.dedupeMs * NANOS_PER_MS,
    compression: definition.compression === "s2" ? StoreCompression.S2 : StoreCompression.None,
    allow_direct: true,
  };
}

function kvConfig(definition: KvDefinition): NewStream {
  const expires = definition.ttlMs > 0;
  return {
    name: `KV_${definition.bucket}`,
    description: definition.purpose,
    subjects: [`$KV.${definition.bucket}.>`],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_msgs_per_subject: definition.history,
    allow_direct: true,
    allow_rollup_hdrs: true,
    deny_delete: true,
    ...(expires && {
      max_age: definition.ttlMs * NANOS_PER_MS,
      duplicate_window: Math.min(definition.ttlMs, 120_000) * NANOS_PER_MS,
      // Without a tombstone an expiry is invisible to watchers.
      allow_msg_ttl: true,
      subject_delete_marker_ttl: Math.max(definition.ttlMs, MIN_MARKER_MS) * NANOS_PER_MS,
    }),
  };
}

function objectConfig(definition: ObjectDefinition): NewStream {
  return {
    name: `OBJ_${definition.bucket}`,
    description: definition.purpose,
    subjects: [`$O.${definition.bucket}.C.>`, `$O.${definition.bucket}.M.>`],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    allow_direct: true,
    allow_rollup_hdrs: true,
  };
}

async function ensureStream(bus: Bus, wanted: NewStream): Promise<void> {
  const { streams } = bus.manager;
  const present = await patiently(wanted.name, () =>
    streams.info(wanted.name).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    }),
  );
  try {
    if (present === undefined) {
      await streams.add(wanted);
      return;
    }
    const fixed = FIXED_FIELDS.find((field) => present.config[field] !== wanted[field]);
    if (fixed !== undefined) {
      throw incompatible(wanted.name, `${fixed} is ${present.config[fixed]}, needed is ${wanted[fixed]}`);
    }
    if (!includes(present.config, wanted))
      await streams.update(wanted.name, { ...present.config, ...wanted });
  } catch (error) {
    throw refusal(error, wanted.name);
  }
}

async function ensureConsumer(bus: Bus, definition: ConsumerDefinition): Promise<void> {
  const name = `${definition.stream}/${definition.durable}`;
  const wanted: Partial<ConsumerConfig> = {
    durable_name: definition.durable,
    description: definition.purpose,
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    replay_policy: ReplayPolicy.Instant,
    filter_subject: definition.filter,
    ack_wait: definition.ackWaitMs * NANOS_PER_MS,
    max_deliver: definition.maxDeliver,
    max_ack_pending: definition.maxAckPending,
  };
  try {
    // The server creates, leaves alone or updates, and refuses what may not change.
    await patiently(name, () => bus.manager.consumers.add(definition.stream, wanted));
  } catch (error) {
    throw refusal(error, name);
  }
}

/** True if every field of `wanted` has that value already. */
function includes(present: object, wanted: object): boolean {
  return Object.entries(wanted).every(
    ([field, value]) => JSON.stringify((present as Record<string, unknown>)[field]) === JSON.stringify(value),
  );
}

/** What the server refuses is a contradiction of definitions; everything else is an ordinary bus failure. */
function refusal(error: unknown, name: string): MortiseError {
  const cause = error instanceof MortiseError ? error.cause : error;
  const isRefused = cause instanceof JetStreamApiError && cause.status < 503;
  return isRefused ? incompatible(name, cause.message, cause) : busError(error, name);
}

function incompatible(name: string, reason: string, cause?: unknown): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRANSPORT_TOPOLOGY",
    message: `${name}: ${reason}.`,
    detail: { name },
    cause,
  });
}
