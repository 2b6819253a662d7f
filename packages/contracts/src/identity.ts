/**
 * Owns who may do what on the bus: one NATS user per service, with the permissions of its row.
 * Does not create users (see the provisioning of the CLI); rows are turned into server configuration there.
 */

export const SERVICE_NAMES = [
  "proxy",
  "sandbox-manager",
  "verifier",
  "scheduler",
  "trainer",
  "archiver",
] as const;
export type ServiceName = (typeof SERVICE_NAMES)[number];
/** `admin` creates streams and consumers; `observer` reads for status and dashboards. */
export type BusUser = ServiceName | "admin" | "observer";

export interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** What an identity file holds. Written with mode 0600, never logged. */
export interface Identity {
  readonly user: string;
  readonly password: string;
  /** Bearer of every gRPC call. */
  readonly bearer: string;
}

const inbox = (user: string) => `_INBOX_${user.replaceAll("-", "_")}.>`;

const followStream = (stream: string) => [
  `$JS.API.STREAM.INFO.${stream}`,
  `$JS.API.CONSUMER.CREATE.${stream}.>`,
  `$JS.API.CONSUMER.INFO.${stream}.>`,
  `$JS.API.CONSUMER.DELETE.${stream}.>`,
  `$JS.API.CONSUMER.MSG.NEXT.${stream}.>`,
  `$JS.API.DIRECT.GET.${stream}`,
  `$JS.API.DIRECT.GET.${stream}.>`,
  `$JS.FC.${stream}.>`,
];
const consumeWork = (stream: string, durable: string) => [
  `$JS.API.CONSUMER.INFO.${stream}.${durable}`,
  `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`,
  `$JS.ACK.${stream}.${durable}.>`,
];
const directGet = (stream: string) => [
  `$JS.API.DIRECT.GET.${stream}`,
  `$JS.API.DIRECT.GET.${stream}.>`,
  `$JS.API.STREAM.INFO.${stream}`,
];
const readKv = (bucket: string) => followStream(`KV_${bucket}`);
const writeKv = (bucket: string) => [...readKv(bucket), `$KV.${bucket}.>`];
const readObjects = (bucket: string) => [
  ...followStream(`OBJ_${bucket}`),
  // The client library reads an object's metadata without direct get.
  `$JS.API.STREAM.MSG.GET.OBJ_${bucket}`,
];
const writeObjects = (bucket: string) => [
  ...readObjects(bucket),
  `$O.${bucket}.>`,
  `$JS.API.STREAM.PURGE.OBJ_${bucket}`,
];
const COMMON = ["$JS.API.INFO", "mortise.v1.dlq.>", ...writeKv("presence")];

const PUBLISH: Record<Exclude<BusUser, "admin">, readonly string[]> = {
  proxy: [
    "mortise.v1.capture.>",
    "mortise.v1.weights.*.receipt.*",
    ...followStream("CAPTURES"),
    ...followStream("WEIGHTS"),
    ...readKv("weights"),
    ...readObjects("weights"),
    ...readKv("runs"),
  ],
  "sandbox-manager": [
    "mortise.v1.trial.*.*.sandbox",
    ...consumeWork("WORK", "launch"),
    ...directGet("TRIALS"),
    ...writeObjects("blobs"),
    ...readKv("runs"),
  ],
  verifier: [
    "mortise.v1.reward.>",
    ...consumeWork("WORK", "verify"),
    ...directGet("REWARDS"),
    ...writeObjects("blobs"),
    ...readKv("runs"),
  ],
  scheduler: [
    "mortise.v1.work.>",
    "mortise.v1.trial.*.*.state",
    "mortise.v1.group.>",
    "mortise.v1.metrics.*.evaluation.*",
    "mortise.v1.metrics.*.phase",
    ...followStream("TRIALS"),
    ...followStream("REWARDS"),
    ...followStream("GROUPS"),
    ...followStream("METRICS"),
    ...followStream("WEIGHTS"),
    ...directGet("CAPTURES"),
    ...writeKv("leases"),
    ...readKv("weights"),
    ...writeKv("runs"),
  ],
  trainer: [
    "mortise.v1.weights.*.*",
    "mortise.v1.metrics.*.step.*",
    "$JS.API.CONSUMER.INFO.GROUPS.*",
    "$JS.API.CONSUMER.MSG.NEXT.GROUPS.*",
    "$JS.ACK.GROUPS.>",
    ...directGet("CAPTURES"),
    ...followStream("GROUPS"),
    ...followStream("METRICS"),
    ...followStream("WEIGHTS"),
    ...followStream("CAPTURES"),
    ...writeObjects("weights"),
    ...writeKv("weights"),
    ...writeKv("leases"),
    ...readKv("runs"),
  ],
  archiver: [
    ...["CAPTURES", "REWARDS", "TRIALS", "GROUPS", "METRICS", "WEIGHTS", "DLQ"].flatMap(followStream),
    ...readObjects("blobs"),
    ...readObjects("weights"),
    ...readKv("runs"),
    ...readKv("weights"),
  ],
  observer: [
    // The client library asks for it before it opens a bucket of objects.
    "$JS.API.INFO",
    ...["CAPTURES", "REWARDS", "TRIALS", "GROUPS", "METRICS", "WEIGHTS", "DLQ"].flatMap(followStream),
    ...["leases", "weights", "presence", "runs"].flatMap(readKv),
    ...readObjects("blobs"),
  ],
};

/** Permissions of one user. The administrator may do everything in the account. */
export function permissionsOf(user: BusUser): Permissions {
  if (user === "admin") return { publish: [">"], subscribe: [">"] };
  const publish = user === "observer" ? PUBLISH.observer : [...COMMON, ...PUBLISH[user]];
  return { publish: [...new Set(publish)].sort(), subscribe: [inbox(user)] };
}

/** Inbox prefix of a user: replies to one service cannot be read by another. */
export function inboxPrefix(user: string): string {
  return `_INBOX_${user.replaceAll("-", "_")}`;
}
