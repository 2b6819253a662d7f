/**
 * Owns the form of a trajectory in Harbor's Agent Trajectory Interchange Format, version 1.7: every object refuses
 * fields it does not know. Covers what an export of captures writes; parts of messages (images) are not among it.
 */
import { z } from "zod";

export const ATIF_VERSION = "ATIF-v1.7";

const Extra = z.record(z.string(), z.unknown());
const Count = z.int().min(0);

const ToolCall = z.strictObject({
  tool_call_id: z.string().min(1),
  function_name: z.string().min(1),
  arguments: z.record(z.string(), z.unknown()),
  extra: Extra.optional(),
});

/** Resolved by trajectory_id among the embedded trajectories; session_id informs only. */
const SubagentRef = z
  .strictObject({
    trajectory_id: z.string().optional(),
    trajectory_path: z.string().optional(),
    session_id: z.string().optional(),
    extra: Extra.optional(),
  })
  .refine((ref) => ref.trajectory_id !== undefined || ref.trajectory_path !== undefined, {
    error: "a reference needs trajectory_id or trajectory_path",
  });

const ObservationResult = z.strictObject({
  source_call_id: z.string().optional(),
  content: z.string().optional(),
  subagent_trajectory_ref: z.array(SubagentRef).optional(),
  extra: Extra.optional(),
});

const Metrics = z.strictObject({
  prompt_tokens: Count.optional(),
  completion_tokens: Count.optional(),
  cached_tokens: Count.optional(),
  cost_usd: z.number().optional(),
  prompt_token_ids: z.array(Count).optional(),
  completion_token_ids: z.array(Count).optional(),
  logprobs: z.array(z.number()).optional(),
  extra: Extra.optional(),
});

const AGENT_FIELDS = [
  "model_name",
  "reasoning_effort",
  "reasoning_content",
  "tool_calls",
  "metrics",
] as const;

export const AtifStep = z
  .strictObject({
    step_id: z.int().min(1),
    timestamp: z.iso.datetime().optional(),
    source: z.enum(["system", "user", "agent"]),
    model_name: z.string().optional(),
    reasoning_effort: z.union([z.string(), z.number()]).optional(),
    message: z.string(),
    reasoning_content: z.string().optional(),
    tool_calls: z.array(ToolCall).optional(),
    observation: z.strictObject({ results: z.array(ObservationResult) }).optional(),
    metrics: Metrics.optional(),
    is_copied_context: z.boolean().optional(),
    llm_call_count: Count.optional(),
    extra: Extra.optional(),
  })
  .superRefine((step, context) => {
    const calls = new Set((step.tool_calls ?? []).map((call) => call.tool_call_id));
    for (const { source_call_id: id } of step.observation?.results ?? [])
      if (id !== undefined && !calls.has(id))
        context.addIssue({ code: "custom", message: `observation of ${id}, which the step does not call` });
    const isUncalled = step.source === "agent" && step.llm_call_count === 0;
    if (isUncalled && (step.metrics ?? step.reasoning_content) !== undefined)
      context.addIssue({ code: "custom", message: "a step without a model call has no metrics" });
    if (step.source === "agent") return;
    for (const field of AGENT_FIELDS)
      if (step[field] !== undefined)
        context.addIssue({ code: "custom", message: `${field} belongs to steps of the agent` });
  });

export type AtifStep = z.infer<typeof AtifStep>;

const shape = {
  schema_version: z.literal(ATIF_VERSION),
  session_id: z.string().optional(),
  trajectory_id: z.string().optional(),
  agent: z.strictObject({
    name: z.string(),
    version: z.string(),
    model_name: z.string().optional(),
    tool_definitions: z.array(Extra).optional(),
    extra: Extra.optional(),
  }),
  steps: z.array(AtifStep).min(1),
  notes: z.string().optional(),
  final_metrics: z
    .strictObject({
      total_prompt_tokens: Count.optional(),
      total_completion_tokens: Count.optional(),
      total_cached_tokens: Count.optional(),
      total_cost_usd: z.number().optional(),
      total_steps: Count.optional(),
      extra: Extra.optional(),
    })
    .optional(),
  continued_trajectory_ref: z.string().optional(),
  extra: Extra.optional(),
};

const Subagent = z.strictObject(shape);

export const AtifTrajectory = z
  .strictObject({ ...shape, subagent_trajectories: z.array(Subagent).optional() })
  .superRefine((trajectory, context) => {
    const subagents = trajectory.subagent_trajectories ?? [];
    const known = new Set(subagents.map((one) => one.trajectory_id));
    if (known.size < subagents.length || known.has(undefined))
      context.addIssue({ code: "custom", message: "embedded trajectories need ids of their own" });
    for (const { steps } of [trajectory, ...subagents])
      steps.forEach(({ step_id: id, observation }, at) => {
        if (id !== at + 1)
          context.addIssue({ code: "custom", message: `step ${at + 1} has the number ${id}` });
        for (const { trajectory_id: named } of (observation?.results ?? []).flatMap(
          (result) => result.subagent_trajectory_ref ?? [],
        ))
          if (named !== undefined && !known.has(named))
            context.addIssue({ code: "custom", message: `no embedded trajectory is ${named}` });
      });
  });

export type AtifTrajectory = z.infer<typeof AtifTrajectory>;
export type AtifSubagent = z.infer<typeof Subagent>;
