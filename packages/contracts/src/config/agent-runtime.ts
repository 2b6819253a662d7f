/**
 * Owns the configuration of an agent runtime: what it listens on, who may call it, where agents run, which harnesses it
 * has, what it bounds. Unknown keys are refused. Does not read files.
 */
import { z } from "zod";
import { LocalHarness, SiteConfig } from "./site.js";

const count = z.int().min(1);
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

const Listen = z.strictObject({
  host: z.string().default("0.0.0.0").describe("Address it listens on."),
  port: z.int().min(0).max(65_535).default(8080).describe("Port; 0 takes a free one."),
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("URL its agent card gives for calls; http://HOST:PORT of the listener when absent."),
});

const Auth = z.strictObject({
  tokenFile: z
    .string()
    .min(1)
    .optional()
    .describe("File with the bearer token callers must send; required unless auth.platform is true."),
  platform: z
    .boolean()
    .default(false)
    .describe("Callers were authenticated by the platform in front; nothing is asked here."),
});

const Place = z.strictObject({
  kind: z
    .enum(["auto", "runc", "chroot"])
    .default("auto")
    .describe("Where agents run; auto: runc where it works, else chroot."),
  directory: z
    .string()
    .startsWith("/")
    .default("/var/lib/mortise-agent-runtime")
    .describe("Directory for image layers, roots and what invocations write; emptied of old roots at start."),
  runc: z.string().default("runc").describe("Path or name of the runc binary."),
});

const Limits = z.strictObject({
  maxInvocations: count
    .max(256)
    .default(1)
    .describe("Invocations that run at once; one more is told to come again."),
  maxRemembered: count.default(32).describe("Ended invocations whose results can still be asked for."),
  rememberMs: count.default(3_600_000).describe("How long they can."),
  maxBodyBytes: z
    .int()
    .min(65_536)
    .default(96 * MIB)
    .describe("Bytes of one request."),
  maxTimeoutMs: count
    .default(7_200_000)
    .describe("Longest wall clock an invocation may ask for its harness."),
  prepareTimeoutMs: count.default(600_000).describe("Wall clock of fetching the image and making the place."),
  drainMs: z.int().min(0).default(20_000).describe("How long invocations may go on after SIGTERM."),
  cpus: z.number().positive().default(4).describe("CPUs an invocation may ask for at most (runc)."),
  memoryBytes: count.default(8 * GIB).describe("Memory an invocation may ask for at most (runc)."),
  pids: count.default(4096).describe("Processes and threads an invocation may ask for at most (runc)."),
  diskBytes: count.default(8 * GIB).describe("Bytes an invocation may write at most (runc)."),
  outputBytes: count.default(MIB).describe("Bytes kept of the harness's output at most."),
});

const images = SiteConfig.shape.sandbox.unwrap().shape.images.unwrap().shape;

export const AgentRuntimeConfig = z.strictObject({
  listen: Listen.prefault({}),
  auth: Auth.prefault({}),
  place: Place.prefault({}),
  images: z
    .strictObject({
      rewrite: images.rewrite,
      dockerConfig: images.dockerConfig,
      archives: z
        .string()
        .startsWith("/")
        .optional()
        .describe("Directory with images in files that invocations may name; none when absent."),
    })
    .prefault({}),
  limits: Limits.prefault({}),
  harness: z
    .record(z.string().regex(/^[A-Za-z0-9_-]+$/), LocalHarness)
    .default({})
    .describe("Harnesses it offers, as a site file writes them; at least one."),
  logLevel: z
    .enum(["debug", "info", "warn", "error"])
    .default("info")
    .describe("Lowest level written to the log."),
});

export type AgentRuntimeConfig = z.infer<typeof AgentRuntimeConfig>;
