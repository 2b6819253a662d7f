/**
 * Owns reading a transcript out of a recording: the longest history a harness sent, and the reply to it. Tests only;
 * of a run transcripts come from captured turns.
 */
import type { Conversation, Message } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import { chatDialect, messagesDialect, responsesDialect } from "@mortise/dialects";
import type { Transcript, TranscriptTurn } from "@mortise/evaluation";
import { recordedReply } from "../../src/capture/recorded-reply.js";
import { isRecord, type Json, readRecording } from "../../src/capture/recording.js";

const READERS = [
  ["/messages", messagesDialect],
  ["/chat/completions", chatDialect],
  ["/responses", responsesDialect],
] as const;

export function recordedTranscript(file: string, harness: string): Transcript {
  const events = readRecording(file);
  let longest: { conversation: Conversation; id: string | number } | undefined;
  for (const { kind, id, fields } of events) {
    const conversation = kind === "req" ? conversationOf(fields) : undefined;
    const length = longest?.conversation.messages.length ?? 0;
    if (conversation && conversation.messages.length > length) longest = { conversation, id };
  }
  if (!longest) return { harness, offered: undefined, turns: [] };
  const { conversation, id } = longest;
  const step = events.findLast((event) => event.kind === "step" && event.id === id)?.fields.step;
  const reply = isRecord(step) ? recordedReply(step) : undefined;
  const results = new Map(
    conversation.messages.flatMap((one) =>
      one.role === "tool" ? [[one.toolCallId, one.text] as const] : [],
    ),
  );
  const turns = conversation.messages.flatMap((message) => turnOf(message, results));
  if (reply)
    turns.push({
      text: reply.text,
      calls: reply.calls.map((call) => ({ ...call, isCut: false, result: undefined })),
    });
  return { harness, offered: undefined, turns };
}

function turnOf(message: Message, results: ReadonlyMap<string, string>): TranscriptTurn[] {
  if (message.role !== "assistant") return [];
  const calls = message.toolCalls.map((call) => ({ ...call, isCut: false, result: results.get(call.id) }));
  return [{ text: message.text, calls }];
}

function conversationOf({ method, url, body }: Json): Conversation | undefined {
  const path = String(url).split("?", 1)[0]!;
  const reader = method === "POST" ? READERS.find(([end]) => path.endsWith(end)) : undefined;
  if (!reader) return undefined;
  try {
    return reader[1].read(body).conversation;
  } catch (error) {
    // Some recorded bodies are refused by the proxy too; they held no history it would have captured.
    if (error instanceof MortiseError && error.code === "MORTISE_PROVIDER_BAD_REQUEST") return undefined;
    throw error;
  }
}
