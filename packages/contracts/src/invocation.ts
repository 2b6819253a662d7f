/**
 * Owns what a site and a remote agent runtime say to each other, whatever carries it: format `mortise-invocation/1`.
 * A2A carries requests as the data part of a message and results as an artifact, AgentCore both as JSON bodies.
 * Bytes are base64. Neither side trusts the other: everything is checked by these schemas, sizes by their readers.
 *
 * N1  An id is run once. `start` with an id that is known joins what runs or answers what it gave; with another body it
 *     is refused. `attach` and `cancel` never start anything.
 * N2  The token, and the listener's key, are in `start` and nowhere else; no result and no status repeats them.
 */
import { z } from "zod";

export const INVOCATION_SCHEMA = "mortise-invocation/1";
export const RESULT_SCHEMA = "mortise-invocation-result/1";
/** URI of the A2A extension by which an agent card says that it speaks this format and keeps N1. */
export const INVOCATION_EXTENSION = "urn:mortise:invocation:1";
/** Media types of the parts of an A2A artifact. */
export const PATCH_MEDIA_TYPE = "application/x-mortise-patch";
export const TRANSCRIPT_MEDIA_TYPE = "application/gzip";

const schema = z.literal(INVOCATION_SCHEMA);
const id = z.string().regex(/^[A-Za-z0-9_-]{1,128}\.[A-Za-z0-9_-]{1,128}$/, "must be run.trial");
const digest = z.string().regex(/^[0-9a-f]{64}$/, "must be 64 lower-case hex digits");
const bytes = z.base64();
const positive = z.number().positive();
const count = z.int().min(1);

const Image = z.discriminatedUnion("kind", [
  /** Programs of the runtime's own machine, for tasks that name no image. */
  z.strictObject({ kind: z.literal("host") }),
  z.strictObject({ kind: z.literal("registry"), reference: z.string().min(1), digest }),
  /** A file or layout in the runtime's own archive directory, by its plain name. */
  z.strictObject({
    kind: z.literal("archive"),
    file: z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}$/, "must be a plain file name"),
    name: z.string().optional(),
    digest,
  }),
]);

const Workspace = z.discriminatedUnion("kind", [
  /** Laid over `workdir`. */
  z.strictObject({ kind: z.literal("tar"), digest, tar: bytes }),
  /** What the image has at `workdir`. */
  z.strictObject({ kind: z.literal("image"), digest }),
]);

const Limits = z.strictObject({
  timeoutMs: count.describe("Wall clock of the harness."),
  cpus: positive,
  memoryBytes: count,
  pids: count,
  diskBytes: count,
  outputBytes: count,
  patchFileBytes: count,
  patchBytes: count,
});

export const StartInvocation = z.strictObject({
  schema,
  kind: z.literal("start"),
  id,
  harness: z.string().min(1),
  instruction: z.string(),
  model: z.strictObject({
    url: z.string().regex(/^https?:\/\/[^/\s]+$/, "must be http://HOST:PORT or https://HOST:PORT"),
    token: z.string().min(1),
    name: z.string().min(1),
    listenerKey: z.string().regex(/^\S*$/).default(""),
  }),
  image: Image,
  workspace: Workspace,
  workdir: z.string().regex(/^\/[^\0]+$/, "must be an absolute path below /"),
  environment: z.record(z.string(), z.string()),
  user: z.enum(["agent", "root"]),
  /** Values beside the token to be kept out of output, reasons and transcript. */
  secrets: z.array(z.string()).default([]),
  limits: Limits,
});
export type StartInvocation = z.infer<typeof StartInvocation>;

export const InvocationRequest = z.discriminatedUnion("kind", [
  StartInvocation,
  z.strictObject({ schema, kind: z.literal("attach"), id }),
  z.strictObject({ schema, kind: z.literal("cancel"), id }),
]);
export type InvocationRequest = z.infer<typeof InvocationRequest>;

const Outcome = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("exited"), code: z.int() }),
  z.strictObject({ kind: z.literal("signalled"), signal: z.string() }),
  z.strictObject({ kind: z.literal("timeout") }),
  z.strictObject({ kind: z.literal("cancelled") }),
  z.strictObject({ kind: z.literal("out-of-memory"), kills: z.int() }),
  /** The harness did not start; `code` is one of the error catalogue where there is one. */
  z.strictObject({ kind: z.literal("refused"), reason: z.string(), code: z.string().optional() }),
  z.strictObject({ kind: z.literal("lost"), reason: z.string() }),
]);

const milliseconds = z.number().min(0);

/** How the runtime confines its agent, in its own words: a claim that nothing on this side can prove. */
export const RuntimePlace = z.strictObject({
  kind: z.enum(["runc", "chroot"]),
  network: z.enum(["closed", "open"]),
  history: z.enum(["hidden", "no-repository"]),
  limits: z.array(z.string()).describe("What of the limits is enforced."),
  probes: z
    .array(z.strictObject({ name: z.string(), expected: z.string(), observed: z.string() }))
    .max(256)
    .optional(),
  notes: z.array(z.string()).max(64),
});
export type RuntimePlace = z.infer<typeof RuntimePlace>;

export const InvocationResult = z.strictObject({
  schema: z.literal(RESULT_SCHEMA),
  id,
  outcome: Outcome,
  end: z.strictObject({
    kind: z.enum(["completed", "turn-limit", "token-limit", "agent-crash", "proxy-failure"]),
    reason: z.string(),
  }),
  harness: z.strictObject({ name: z.string(), version: z.string() }),
  outputTail: z.string(),
  isModelUnreachable: z.boolean(),
  /** A `mortise-patch/1` archive; absent when nothing ran. */
  patch: bytes.optional(),
  transcript: z.strictObject({ archive: bytes, nFiles: z.int().min(0), isTruncated: z.boolean() }).optional(),
  usage: z.strictObject({
    cpuMs: milliseconds.optional(),
    throttledMs: milliseconds.optional(),
    diskWaitMs: milliseconds.optional(),
    memoryPeakBytes: milliseconds.optional(),
    oomKills: z.int().optional(),
    pidsRefusals: z.int().optional(),
    nDenied: z.int().optional(),
  }),
  timings: z.strictObject({
    prepareMs: milliseconds,
    agentMs: milliseconds,
    collectMs: milliseconds,
    modelMs: milliseconds.optional(),
  }),
  place: RuntimePlace.optional(),
});
export type InvocationResult = z.infer<typeof InvocationResult>;

/** What a runtime says while it works. */
export const InvocationStatus = z.strictObject({
  phase: z.enum(["accepted", "preparing", "running", "collecting"]),
  atMs: z.int(),
});
export type InvocationStatus = z.infer<typeof InvocationStatus>;
