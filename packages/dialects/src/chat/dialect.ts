/** Owns OpenAI Chat Completions as one dialect; reading, writing and refusing are the files beside it. */
import type { Dialect } from "../types.js";
import { refuseChat } from "./error.js";
import { ChatWriter } from "./reply.js";
import { readChatRequest } from "./request.js";

export const chatDialect: Dialect = {
  name: "openai-chat",
  read: readChatRequest,
  writer: (head, request) => new ChatWriter(head, request),
  refuse: refuseChat,
};
