/** Owns docs/reference/subjects.md: everything the bus stores and who may use it. */
import { bytes, code, page, seconds, table } from "./markdown.mjs";

const PLACEHOLDER_RUN = "{run}";

export function renderSubjects({
  STREAMS,
  CONSUMERS,
  runConsumers,
  KV_BUCKETS,
  OBJECT_BUCKETS,
  SERVICE_NAMES,
  permissionsOf,
}) {
  const streams = STREAMS.map((stream) => [
    code(stream.name),
    stream.subjects.map(code).join(", "),
    stream.message,
    stream.retention,
    bytes(stream.maxBytes),
    seconds(stream.dedupeMs),
    stream.purpose,
  ]);
  const consumers = [...CONSUMERS, ...runConsumers(PLACEHOLDER_RUN)].map((consumer) => [
    code(consumer.durable),
    code(consumer.stream),
    code(consumer.filter),
    seconds(consumer.ackWaitMs),
    consumer.maxDeliver === -1 ? "unlimited" : consumer.maxDeliver,
    consumer.maxAckPending,
    consumer.purpose,
  ]);
  const kv = KV_BUCKETS.map(({ bucket, key, history, ttlMs, purpose }) => [
    code(bucket),
    code(key),
    history,
    ttlMs === 0 ? "none" : seconds(ttlMs),
    purpose,
  ]);
  const objects = OBJECT_BUCKETS.map(({ bucket, name, purpose }) => [code(bucket), code(name), purpose]);
  const users = [...SERVICE_NAMES, "observer", "admin"].map((user) => {
    const { publish, subscribe } = permissionsOf(user);
    return [code(user), publish.map(code).join("<br>"), subscribe.map(code).join("<br>")];
  });
  return page("Subjects, streams and buckets", "packages/contracts/src/topology.ts and identity.ts", [
    "## Streams",
    "When a stream has reached its size, publishes are refused and nothing is dropped.",
    table(["stream", "subjects", "message", "retention", "size", "dedupe window", "purpose"], streams),
    "## Durable consumers",
    table(["durable", "stream", "filter", "ack wait", "deliveries", "max ack pending", "purpose"], consumers),
    "## KV buckets",
    table(["bucket", "key", "history", "time to live", "purpose"], kv),
    "## Object buckets",
    table(["bucket", "object", "purpose"], objects),
    "## Users",
    "One NATS user per service, with these permissions and no others.",
    table(["user", "may publish to", "may subscribe to"], users),
  ]);
}
