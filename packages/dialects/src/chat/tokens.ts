/**
 * Owns the token fields of a Chat Completions reply, for clients that asked for them: ids as engines of open
 * models give them, log-probabilities in OpenAI's form. A token is named by its id, not spelled: a piece of a
 * character has no spelling.
 */
import type { ReplyTokens, TokenField } from "../types.js";

/** Fields of the choice that holds the reply. */
export function choiceTokenFields(tokens: ReplyTokens | undefined, fields: readonly TokenField[]): object {
  if (!tokens) return {};
  return {
    ...(fields.includes("logprobs") && { logprobs: logProbabilities(tokens) }),
    ...(fields.includes("token_ids") && { token_ids: [...tokens.ids] }),
  };
}

/** Fields of the object around it. */
export function contextTokenFields(tokens: ReplyTokens | undefined, fields: readonly TokenField[]): object {
  return tokens && fields.includes("token_ids") ? { prompt_token_ids: [...tokens.promptIds] } : {};
}

/** Null where the engine gave none (C10). */
function logProbabilities({ ids, logProbabilities: values }: ReplyTokens): object | null {
  if (!values) return null;
  const content = Array.from(ids, (id, at) => ({
    token: `token_id:${id}`,
    logprob: Number.isNaN(values[at]) ? null : values[at],
    bytes: null,
    top_logprobs: [],
  }));
  return { content, refusal: null };
}
