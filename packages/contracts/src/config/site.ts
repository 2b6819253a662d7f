/**
 * Owns the site configuration: where things are on this deployment. Shared by every service and run.
 * Does not own what a run does (see run.ts). Unknown keys are refused.
 */
import { z } from "zod";

const port = z.int().min(0).max(65_535);
const positiveMs = z.int().min(1);

const HarnessDefinition = z.strictObject({
  directory: z
    .string()
    .min(1)
    .describe("Directory of the harness, mounted read-only at /opt/harness in the sandbox."),
  argv: z
    .array(z.string())
    .min(1)
    .describe("Command that runs it inside the sandbox; `node` is the runtime given to the sandbox."),
  environment: z
    .record(z.string(), z.string())
    .default({})
    .describe(
      "Environment. `{model_url}`, `{token}`, `{model}`, `{instruction}` and `{workspace}` are replaced.",
    ),
  exitCodes: z
    .record(
      z.string().regex(/^[0-9]{1,3}$/),
      z.enum(["completed", "turn-limit", "token-limit", "agent-crash", "proxy-failure"]),
    )
    .default({})
    .describe("What exit codes other than 0 mean; one that is not listed is a crash of the agent."),
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
    .record(z.string().regex(/^[A-Za-z0-9_-]+$/), HarnessDefinition)
    .default({})
    .describe("Harnesses by name."),
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
      backend: z
        .enum(["auto", "runc", "docker", "process"])
        .default("auto")
        .describe("auto: runc as root on Linux, else Docker, else process (insecure, development only)."),
      runc: z.string().default("runc").describe("Path or name of the runc binary."),
      maxConcurrentStarts: z.int().min(1).default(4).describe("Sandboxes being started at once."),
      maxSandboxes: z.int().min(1).default(256).describe("Sandboxes prepared or running at once."),
      cpus: z.number().positive().default(1).describe("CPUs a sandbox may use."),
      memoryBytes: z.int().min(16_777_216).default(536_870_912).describe("Memory a sandbox may use, bytes."),
      pids: z.int().min(8).default(128).describe("Processes and threads a sandbox may have."),
      diskBytes: z
        .int()
        .min(1_048_576)
        .default(268_435_456)
        .describe("Bytes an agent may change in its workspace."),
      outputBytes: z.int().min(1024).default(1_048_576).describe("Bytes of output kept of one command."),
    })
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
export type HarnessConfig = z.infer<typeof HarnessDefinition>;
