/** Owns OpenAI Responses as one dialect; reading, writing and refusing are the files beside it. */
import type { Dialect } from "../types.js";
import { refuseResponses } from "./error.js";
import { ResponsesWriter } from "./reply.js";
import { readResponsesRequest } from "./request.js";

export const responsesDialect: Dialect = {
  name: "openai-responses",
  read: readResponsesRequest,
  writer: (head, request) => new ResponsesWriter(head, request),
  refuse: refuseResponses,
};
