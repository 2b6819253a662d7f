/** Owns Anthropic Messages as one dialect; reading, writing and refusing are the files beside it. */
import type { Dialect } from "../types.js";
import { readMessagesRequest } from "./request.js";

export const messagesDialect: Pick<Dialect, "name" | "read"> = {
  name: "anthropic-messages",
  read: readMessagesRequest,
};
