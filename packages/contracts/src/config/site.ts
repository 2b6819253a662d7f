/**
 * Owns the site configuration: where things are on this deployment. Shared by every service and run.
 * Does not own what a run does (see run.ts). Unknown keys are refused.
 */
import { z } from "zod";
import { DockerEngine } from "./docker-engine.js";
import { ImageBuild } from "./image-build.js";
import { KubernetesCluster } from "./kubernetes.js";
import { RemoteHarness } from "./remote-harness.js";
import { backendChoice, refuseWrongBackend } from "./sandbox-backends.js";

const port = z.int().min(0).max(65_535);
const positiveMs = z.int().min(1);

/** Harnesses with an adapter of their own (harnesses/<name>/adapter.ts). */
export const HARNESS_ADAPTERS = [
  "mini",
  "claude-code",
  "opencode",
  "codex",
  "pi",
  "openhands",
  "mini-swe-agent",
] as const;

const wireApi = z.enum(["chat", "responses", "messages"]);
const PLACES =
  "`{model_url}`, `{model_origin}` (without /v1), `{token}`, `{model}`, `{instruction}`, `{workspace}`, `{home}`, `{runtime}`, `{context_tokens}` and `{max_output_tokens}` are replaced.";

const windows = {
  contextTokens: z
    .int()
    .min(1024)
    .default(131_072)
    .describe("Context window the harness is told, tokens; it compacts by this."),
  maxOutputTokens: z
    .int()
    .min(1)
    .default(8_192)
    .describe("Longest reply the harness is told to ask for, tokens."),
};

const AdapterHarness = z.strictObject({
  adapter: z
    .enum(HARNESS_ADAPTERS)
    .describe("Harness with an adapter: version, runtime and command are the adapter's."),
  wireApi: wireApi
    .optional()
    .describe("Model API, of those the harness speaks; the adapter's first when absent."),
  environment: z
    .record(z.string(), z.string())
    .default({})
    .describe("Variables besides the adapter's own; they win over them."),
  ...windows,
});

const ConfiguredHarness = z.strictObject({
  directory: z
    .string()
    .min(1)
    .describe("Directory of the harness, mounted read-only at /opt/harness in the sandbox."),
  argv: z
    .array(z.string())
    .min(1)
    .describe("Command that runs it inside the sandbox; `node` is the runtime given to the sandbox."),
  environment: z.record(z.string(), z.string()).default({}).describe(`Environment. ${PLACES}`),
  files: z
    .record(z.string(), z.string())
    .default({})
    .describe("Files written before the start, path to content, with the same places but the token."),
  instruction: z
    .string()
    .default("{instruction}")
    .describe("What a task's instruction becomes; `{instruction}` is replaced."),
  exitCodes: z
    .record(
      z.string().regex(/^[0-9]{1,3}$/),
      z.enum(["completed", "turn-limit", "token-limit", "agent-crash", "proxy-failure"]),
    )
    .default({})
    .describe("What exit codes other than 0 mean; one that is not listed is a crash of the agent."),
  transcript: z
    .array(z.string().min(1))
    .default([])
    .describe("Glob patterns of its own transcript below its home, kept with the trial."),
  version: z.string().min(1).default("unknown").describe("Version, as recorded with what it does."),
  ...windows,
});

/** One that runs where its configuration is read. */
export const LocalHarness = z.union([AdapterHarness, ConfiguredHarness]);

const ImageRewrite = z.strictObject({
  prefix: z
    .string()
    .min(1)
    .describe("Whole path segments of a repository: docker.io, docker.io/library, registry.example/team."),
  endpoint: z
    .string()
    .min(1)
    .describe("What replaces the prefix: a host with an optional port and path, without a scheme."),
  plainHttp: z
    .boolean()
    .default(false)
    .describe("Speak HTTP without TLS; loopback addresses need no such permission."),
  only: z.boolean().default(false).describe("Never ask the registry itself, whatever the mirror answers."),
});

export const SiteConfig = z.strictObject({
  nats: z.strictObject({
    url: z.string().min(1).describe("Address of the NATS server, for example nats://127.0.0.1:4222."),
  }),
  identity: z.strictObject({
    directory: z
      .string()
      .min(1)
      .describe(
        "Directory with one <service>.json per service: NATS user, password and the gRPC bearer. Mode 0600.",
      ),
  }),
  state: z.strictObject({
    directory: z.string().min(1).describe("Directory for checkpoints, sandboxes and caches of the services."),
  }),
  rpc: z
    .strictObject({
      host: z.string().default("127.0.0.1").describe("Address gRPC servers bind to."),
      advertise: z
        .string()
        .optional()
        .describe("Host name other services reach this one by; the bind address when absent."),
      port: port.default(0).describe("gRPC port; 0 takes a free one."),
    })
    .prefault({}),
  http: z
    .strictObject({
      host: z.string().default("127.0.0.1").describe("Address the health and metrics server binds to."),
      port: port.default(0).describe("Port of /healthz, /readyz and /metrics; 0 takes a free one."),
    })
    .prefault({}),
  telemetry: z
    .strictObject({
      logLevel: z
        .enum(["debug", "info", "warn", "error"])
        .default("info")
        .describe("Lowest level written to the log."),
      otlpEndpoint: z.url().optional().describe("OTLP/HTTP endpoint for traces; tracing is off when absent."),
      sampleRatio: z.number().min(0).max(1).default(1).describe("Share of trials that are traced."),
    })
    .prefault({}),
  tasks: z.strictObject({
    directory: z.string().min(1).describe("Directory with Harbor task directories and index.json."),
  }),
  harness: z
    .record(z.string().regex(/^[A-Za-z0-9_-]+$/), z.union([AdapterHarness, ConfiguredHarness, RemoteHarness]))
    .default({})
    .describe("Harnesses by name: one with an adapter, a configured command, or one in a remote runtime."),
  proxy: z
    .strictObject({
      host: z.string().default("127.0.0.1").describe("Address the model API binds to."),
      advertise: z
        .string()
        .optional()
        .describe("Host name sandbox-managers reach the model API by; the bind address when absent."),
      port: port.default(0).describe("Port of the model API; 0 takes a free one."),
      engineWorkers: z
        .int()
        .min(1)
        .max(64)
        .default(1)
        .describe("Worker threads that sample with the embedded engine."),
      maxBatch: z.int().min(1).max(1024).default(64).describe("Turns decoded together by one worker."),
      cacheTokens: z.int().min(1024).default(65_536).describe("Tokens of KV cache kept by one worker."),
      spoolTurns: z
        .int()
        .min(1)
        .default(4096)
        .describe(
          "Sampled turns that may wait for NATS; at this many new model calls are told to come again.",
        ),
      spoolBytes: z
        .int()
        .min(1_048_576)
        .default(268_435_456)
        .describe("Bytes of sampled turns that may wait for NATS, as spoolTurns."),
    })
    .prefault({}),
  sandbox: z
    .strictObject({
      ...backendChoice,
      runc: z.string().default("runc").describe("Path or name of the runc binary."),
      docker: DockerEngine.prefault({}),
      images: z
        .strictObject({
          rewrite: z
            .array(ImageRewrite)
            .default([])
            .describe("Mirrors and pull-through caches, tried in order before the registry itself."),
          dockerConfig: z
            .string()
            .min(1)
            .optional()
            .describe("File with registry logins as `docker login` writes it; Docker's own when absent."),
          build: ImageBuild.prefault({}),
        })
        .prefault({}),
      kubernetes: KubernetesCluster.prefault({}),
      maxConcurrentStarts: z
        .int()
        .min(1)
        .optional()
        .describe("Sandboxes being started at once; two per core when absent."),
      maxSandboxes: z.int().min(1).default(256).describe("Sandboxes prepared or running at once."),
      cpus: z.number().positive().default(1).describe("CPUs a sandbox may use."),
      memoryBytes: z
        .int()
        .min(16_777_216)
        .default(2_147_483_648)
        .describe("Memory a sandbox may use at most, bytes; used as needed, not reserved."),
      pids: z.int().min(8).default(512).describe("Processes and threads a sandbox may have."),
      diskBytes: z
        .int()
        .min(1_048_576)
        .default(1_073_741_824)
        .describe("Bytes an agent may change in its workspace; memory on runc, used as needed."),
      outputBytes: z.int().min(1024).default(1_048_576).describe("Bytes of output kept of one command."),
      taskVariables: z
        .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/))
        .default([])
        .describe("Variables of the sandbox-manager's environment that tasks may ask for by their names."),
      publicHosts: z
        .array(z.string().regex(/^[A-Za-z0-9.-]+$/, "must be a host name or an IPv4 address"))
        .default([])
        .describe(
          "Hosts the agent of a task that asks for a public network can reach besides the model; none: only the model.",
        ),
      privateHosts: z
        .array(z.string().regex(/^[A-Za-z0-9.-]+$/, "must be a host name or an IPv4 address"))
        .default([])
        .describe(
          "Hosts with private or loopback addresses that allow-lists may name nevertheless, such as a package mirror.",
        ),
      shared: z
        .record(z.string().regex(/^[A-Za-z0-9_-]+$/), z.string().startsWith("/"))
        .default({})
        .describe("Directories by name that run files may mount read-only into their sandboxes."),
      maxScratchBytes: z
        .int()
        .min(0)
        .default(1_073_741_824)
        .describe("Bytes of all scratch volumes of one sandbox together."),
      templateBytes: z
        .int()
        .min(0)
        .default(1_073_741_824)
        .describe(
          "Bytes of templates kept (memory on runc); the longest unused go first, those in use stay.",
        ),
      templateAgeMs: positiveMs
        .default(3_600_000)
        .describe("Time after its last use a template is kept, milliseconds."),
      maxKept: z
        .int()
        .min(0)
        .default(8)
        .describe("Sandboxes of ended trials kept to be looked into; the oldest goes first."),
    })
    .superRefine(refuseWrongBackend)
    .prefault({}),
  verifier: z
    .strictObject({
      concurrency: z.int().min(1).default(4).describe("Trials one verifier grades at once."),
      timeoutMs: positiveMs.default(60_000).describe("Time a test run may take when the task names none."),
    })
    .prefault({}),
  archiver: z
    .strictObject({
      directory: z
        .string()
        .optional()
        .describe("Directory of the archive; <state.directory>/archive when absent."),
      rowsPerFile: z.int().min(1).default(2000).describe("Rows after which a parquet file is closed."),
    })
    .prefault({}),
});

export type SiteConfig = z.infer<typeof SiteConfig>;
/** A harness as a site file writes it: what has a default may be absent. */
export type HarnessSettings = NonNullable<z.input<typeof SiteConfig>["harness"]>[string];
