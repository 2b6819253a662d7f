/**
 * Owns an evaluation protocol: everything besides model, harness and tasks that a measured solve rate depends on. Two
 * rates may be compared when their protocols agree. Recorded with the run and with its result.
 * Does not own how a digest is taken of it (packages/evaluation).
 */
import { z } from "zod";

/** What a timer takes; with more it would be over at once. */
const MAX_TIMER_MS = 2_147_483_647;
const ms = z.int().min(1).max(MAX_TIMER_MS);

/** A text with no place for the task's own words would give every task the same instruction. */
export const Instruction = z
  .string()
  .refine((text) => text.includes("{instruction}"), "must contain {instruction}")
  .default("{instruction}")
  .describe(
    "What a task's instruction becomes before the harness sees it; `{instruction}` and `{tests}`, the place of shown tests, are replaced.",
  );

export const Rendering = {
  history: z
    .enum(["auto", "keep", "branch", "strip"])
    .default("auto")
    .describe(
      "What a continued conversation shows of earlier turns. keep: their sampled tokens; branch: what the chat template makes of them today; strip: as branch, without reasoning; auto: keep where the template allows it, else branch.",
    ),
  lateSystem: z
    .enum(["to-user", "merge-up", "keep"])
    .default("to-user")
    .describe(
      "System messages behind the first reply. to-user: become user messages; merge-up: join the leading one, which starts a new branch; keep: stay, where the chat template takes them.",
    ),
  thinking: z
    .enum(["template", "on", "off"])
    .default("template")
    .describe(
      "The chat template's enable_thinking. template: as the template has it; what a harness asks for is only recorded (C8).",
    ),
};

/** Of a sandbox, in place of what its task asks for. */
export const SandboxLimits = {
  cpus: z
    .number()
    .positive()
    .optional()
    .describe("CPUs, whatever the task asks for; the site's limit holds."),
  memoryBytes: z.int().min(16_777_216).optional().describe("Memory, bytes; as cpus."),
  pids: z.int().min(8).optional().describe("Processes and threads; as cpus."),
  diskBytes: z.int().min(1_048_576).optional().describe("Bytes an agent may change; as cpus."),
};

/** What a run may ask of every sandbox an agent works in, beyond the task. */
export const AgentNetwork = z
  .enum(["as-task", "closed"])
  .default("as-task")
  .describe(
    "What an agent reaches besides the model. as-task: what its task asks for and the site allows; closed: nothing.",
  );

export const ShownTests = z
  .enum(["none", "copy"])
  .default("none")
  .describe(
    "copy: a copy of the hidden tests lies in the work tree, to be run and changed. Grading uses the originals, and the copy is no part of the change. For evaluations only.",
  );

export const EvaluationProtocol = z.strictObject({
  schema: z.literal(1).describe("Version of this file."),
  name: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/)
    .describe("What results call it. Two names with equal settings are the same protocol."),
  attempts: z.int().min(1).max(1024).describe("Attempts at each task."),
  seed: z.int().min(0).default(1).describe("Seed of sampling noise: the same for the same attempt."),
  maxRetries: z
    .int()
    .min(0)
    .max(10)
    .default(2)
    .describe("New trials in the place of one that was lost to infrastructure."),
  sampling: z
    .strictObject({
      temperature: z.number().positive().default(1).describe("Sampling temperature (C8)."),
      maxTokensPerTurn: z.int().min(1).default(4096).describe("Tokens one turn may sample."),
    })
    .prefault({}),
  limits: z
    .strictObject({
      maxTurns: z.int().min(1).default(100).describe("Turns one trial may take."),
      maxTurnsWithoutCall: z
        .int()
        .min(0)
        .default(0)
        .describe("Turns one thread may take in a row without a tool call; 0 = unlimited."),
      maxPromptTokens: z.int().min(1).default(20_000_000).describe("Sum of context tokens a trial may send."),
      maxResponseTokens: z.int().min(1).default(200_000).describe("Sum of sampled tokens a trial may use."),
      agentTimeoutMs: ms
        .default(2_400_000)
        .describe("Wall clock of the agent, if the task names no lower one."),
      verifyTimeoutMs: ms.default(1_800_000).describe("Wall clock of one test run."),
      ...SandboxLimits,
    })
    .prefault({}),
  prompt: z
    .strictObject({
      instruction: Instruction,
      ...Rendering,
    })
    .prefault({}),
  harness: z
    .strictObject({
      version: z
        .string()
        .min(1)
        .optional()
        .describe("Version the harness must have; any, and recorded, when absent."),
    })
    .prefault({}),
  graders: z
    .array(z.string().min(1))
    .default([])
    .describe("Graders that may judge, as verdicts name them; any, and recorded, when empty."),
  network: AgentNetwork,
  shownTests: ShownTests,
});

export type EvaluationProtocol = z.infer<typeof EvaluationProtocol>;
