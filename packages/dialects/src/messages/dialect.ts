/** Owns Anthropic Messages as one dialect; reading, writing and refusing are the files beside it. */
import type { Dialect } from "../types.js";
import { messagesRefusal } from "./error.js";
import { readMessagesRequest } from "./request.js";
import { MessagesWriter } from "./writer.js";

export const messagesDialect: Dialect = {
  name: "anthropic-messages",
  read: readMessagesRequest,
  writer: (head) => new MessagesWriter(head),
  refuse: messagesRefusal,
};
