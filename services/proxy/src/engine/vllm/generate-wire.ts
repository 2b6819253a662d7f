/**
 * Owns the route made for token ids, /inference/v1/generate (a server started with --enable-scale-out): ids in
 * and out, version spans, routed experts.
 */
import { z } from "zod";
import { type Asked, type Piece, presentOrNull, samplingOf, Usage, type Wire } from "./wire.js";

const Candidate = z.object({ token_id: z.int(), logprob: z.number() });

const Event = z.object({
  choices: z.array(
    z.object({
      token_ids: z.array(z.int().min(0)).nullish(),
      logprobs: z
        .object({
          content: z.array(Candidate.extend({ top_logprobs: z.array(Candidate).nullish() })).nullish(),
        })
        .nullish(),
      finish_reason: z.string().nullish(),
      routed_experts: z.string().nullish(),
      weight_versions: z
        .array(z.object({ version: z.string(), start: z.int().min(0), end: z.int().min(0) }))
        .nullish(),
    }),
  ),
  prompt_token_ids: z.array(z.int()).nullish(),
  usage: Usage,
});

export const generateWire: Wire = {
  path: "inference/v1/generate",
  isRich: true,
  body: (asked) => ({
    model: asked.model,
    token_ids: [...asked.request.contextIds],
    sampling_params: {
      ...samplingOf(asked),
      detokenize: false,
      routed_experts_prompt_start: asked.request.routingFrom ?? 0,
    },
    stream: true,
    stream_options: { include_usage: true },
    return_token_ids: asked.echoesContext,
    ...(asked.cacheSalt !== undefined && { cache_salt: asked.cacheSalt }),
  }),
  headers: ({ request }: Asked) => ({ "x-session-id": request.affinity }),
  read(event): Piece {
    const { choices, prompt_token_ids, usage } = Event.parse(event);
    const [choice] = choices;
    const content = choice?.logprobs?.content ?? undefined;
    return {
      ids: choice?.token_ids ?? [],
      logProbabilities: content?.map((one) => presentOrNull(one.logprob)),
      alternatives: (content ?? []).map(
        (one) => new Map([one, ...(one.top_logprobs ?? [])].map((each) => [each.token_id, each.logprob])),
      ),
      finish: choice?.finish_reason ?? undefined,
      contextIds: prompt_token_ids ?? undefined,
      contextLength: usage?.prompt_tokens,
      spans: choice?.weight_versions?.map(({ version, start, end }) => ({ label: version, start, end })),
      routedExperts: choice?.routed_experts ?? undefined,
    };
  },
};
