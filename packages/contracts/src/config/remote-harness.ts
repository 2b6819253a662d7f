/**
 * Owns how a site file names a harness that runs in a runtime this site does not control: where it is, how it is
 * spoken to, how it reaches the model. What may use it is the run's word (`rollout.unproven`).
 */
import { z } from "zod";

const ms = z.int().min(1);

const Remote = z.strictObject({
  protocol: z
    .enum(["a2a", "agentcore"])
    .describe("a2a: an agent card and JSON-RPC; agentcore: GET /ping and POST /invocations."),
  url: z
    .url({ protocol: /^https?$/ })
    .describe(
      "Base URL: of the agent card (a2a), or what /ping and /invocations are appended to (agentcore).",
    ),
  harness: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .optional()
    .describe(
      "Name of the harness as the runtime's own configuration has it; this table's name when absent.",
    ),
  tokenFile: z
    .string()
    .min(1)
    .optional()
    .describe(
      "File with the bearer token the runtime asks for, readable by its owner only; none when absent.",
    ),
  modelUrl: z
    .string()
    .regex(/^https?:\/\/[^/\s]+\/?$/, "must be http://HOST:PORT or https://HOST:PORT, without a path")
    .default("http://{address}")
    .describe(
      "How the runtime reaches the proxy: `{address}`, `{host}` and `{port}` are the replica's own. https: TLS that ends before the proxy and passes bytes on.",
    ),
  plainHttp: z
    .boolean()
    .default(false)
    .describe(
      "Allow http without TLS to hosts other than loopback, for url and modelUrl: tokens can be read on the way.",
    ),
  ping: z
    .boolean()
    .default(true)
    .describe("agentcore: ask /ping before a trial counts as prepared; false where the platform hides it."),
  startTimeoutMs: ms.default(60_000).describe("How long the runtime may take to accept an invocation."),
  silenceTimeoutMs: ms
    .default(120_000)
    .describe(
      "How long a stream may say nothing before it is opened anew; the invocation goes on meanwhile.",
    ),
  graceMs: ms
    .default(120_000)
    .describe(
      "Beyond the agent's own limit, for the runtime to fetch the image before and to answer afterwards.",
    ),
  reattachTimeoutMs: ms
    .default(60_000)
    .describe("How long a runtime that cannot be reached is tried again before the trial is lost."),
  pollIntervalMs: ms.default(2_000).describe("How often a runtime without streams is asked."),
  maxAnswerBytes: z
    .int()
    .min(65_536)
    .default(201_326_592)
    .describe("Bytes of one answer of the runtime; a larger one is refused and its trial lost."),
});

export const RemoteHarness = z.strictObject({
  remote: Remote.describe("Where it runs. The harness itself is configured at the runtime."),
});

export type RemoteHarness = z.infer<typeof RemoteHarness>;
