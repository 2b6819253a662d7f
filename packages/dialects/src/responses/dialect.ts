/** Owns OpenAI Responses as one dialect; reading, writing and refusing are the files beside it. */
import type { Dialect } from "../types.js";
import { readResponsesRequest } from "./request.js";

export const responsesDialect = {
  name: "openai-responses",
  read: readResponsesRequest,
} satisfies Pick<Dialect, "name" | "read">;
