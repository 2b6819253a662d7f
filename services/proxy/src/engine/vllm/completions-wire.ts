/**
 * Owns the route every vLLM server has, /v1/completions, asked for token ids. It reports no weight versions,
 * and no routed experts while streaming. The text it sends is not read.
 */
import { z } from "zod";
import { type Asked, type Piece, presentOrNull, samplingOf, Usage, type Wire } from "./wire.js";

const Event = z.object({
  choices: z.array(
    z.object({
      token_ids: z.array(z.int().min(0)).nullish(),
      prompt_token_ids: z.array(z.int()).nullish(),
      logprobs: z
        .object({
          token_logprobs: z.array(z.number().nullable()),
          top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).nullish(),
        })
        .nullish(),
      finish_reason: z.string().nullish(),
    }),
  ),
  usage: Usage,
});

/** How ids are named among the alternatives, on request. */
const ID_NAME = /^token_id:(\d+)$/;

export const completionsWire: Wire = {
  path: "v1/completions",
  isRich: false,
  body: (asked) => ({
    model: asked.model,
    prompt: [...asked.request.contextIds],
    ...samplingOf(asked),
    add_special_tokens: false,
    stream: true,
    stream_options: { include_usage: true },
    return_token_ids: true,
    return_tokens_as_token_ids: true,
    session_id: asked.request.affinity,
    ...(asked.cacheSalt !== undefined && { cache_salt: asked.cacheSalt }),
  }),
  headers: ({ request }: Asked) => ({ "x-session-id": request.affinity }),
  read(event): Piece {
    const { choices, usage } = Event.parse(event);
    const [choice] = choices;
    return {
      ids: choice?.token_ids ?? [],
      logProbabilities: choice?.logprobs?.token_logprobs.map(presentOrNull),
      alternatives: (choice?.logprobs?.top_logprobs ?? []).map((named) => byId(named ?? {})),
      finish: choice?.finish_reason ?? undefined,
      contextIds: choice?.prompt_token_ids ?? undefined,
      contextLength: usage?.prompt_tokens,
      spans: undefined,
      routedExperts: undefined,
    };
  },
};

function byId(named: Readonly<Record<string, number>>): Map<number, number> {
  return new Map(
    Object.entries(named).flatMap(([name, value]) => {
      const id = ID_NAME.exec(name)?.[1];
      return id === undefined ? [] : [[Number(id), value] as const];
    }),
  );
}
