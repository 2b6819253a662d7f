/**
 * Owns what a session remembers of the histories it digested last, so that a request is digested by what is new in
 * it: harnesses send everything again at every turn. Remembered messages are compared word for word, never by a
 * lesser hash, so the digests are those of digestRequest for whatever an agent may send.
 */
import type { Conversation, Message, ToolSchema } from "./conversation.js";
import {
  type DigestedMessage,
  digestMessage,
  digestTools,
  History,
  joinDigests,
  type RequestDigests,
} from "./digests.js";

/** The main agent and the sub-agents that take turns with it. */
const MAX_HISTORIES = 4;
/** Characters remembered of them together: about twice what fits a long context. */
const MAX_CHARACTERS = 2 * 1024 * 1024;

interface Remembered {
  readonly messages: readonly Message[];
  readonly digested: readonly DigestedMessage[];
  readonly history: History;
  readonly characters: number;
}

export class DigestMemory {
  /** Newest first; each is another conversation, or another branch of one. */
  private histories: readonly Remembered[] = [];
  private tools = { text: "[]", digest: digestTools([]) };

  /** Equal to `digestRequest`, at the price of what of the conversation is new. */
  digest(conversation: Conversation, choice: unknown = null, caller = ""): RequestDigests {
    const { known, shared } = this.longestShared(conversation.messages);
    // The remembered ones stay: the equal ones of the request are given up while they are young.
    const fresh = conversation.messages.slice(shared);
    const messages = [...(known?.messages.slice(0, shared) ?? []), ...fresh];
    const digested = [...(known?.digested.slice(0, shared) ?? []), ...fresh.map(digestMessage)];
    const history = new History(digested, known && { history: known.history, shared });
    const characters = messages.reduce((sum, message) => sum + charactersOf(message), 0);
    const isLonger = known !== undefined && shared === known.messages.length;
    this.remember({ messages, digested, history, characters }, isLonger ? known : undefined);
    return joinDigests(digested, history, this.digestTools(conversation.tools), { choice, caller });
  }

  private longestShared(messages: readonly Message[]): { known: Remembered | undefined; shared: number } {
    let best: { known: Remembered | undefined; shared: number } = { known: undefined, shared: 0 };
    for (const known of this.histories) {
      const shared = sharedCount(known.messages, messages);
      if (shared > best.shared) best = { known, shared };
    }
    return best;
  }

  /** @param replaced the history that went on to be this one */
  private remember(entry: Remembered, replaced: Remembered | undefined): void {
    const others = this.histories.filter((one) => one !== replaced).slice(0, MAX_HISTORIES - 1);
    let characters = 0;
    this.histories = [entry, ...others].filter((one) => {
      characters += one.characters;
      return characters <= MAX_CHARACTERS;
    });
  }

  private digestTools(tools: readonly ToolSchema[]): Uint8Array {
    const text = JSON.stringify(tools);
    if (text !== this.tools.text) this.tools = { text, digest: digestTools(tools) };
    return this.tools.digest;
  }
}

function sharedCount(known: readonly Message[], messages: readonly Message[]): number {
  let count = 0;
  while (count < known.length && count < messages.length && isSame(known[count]!, messages[count]!)) count++;
  return count;
}

/** In everything that is digested; reasoning is not. */
function isSame(a: Message, b: Message): boolean {
  if (a.role !== b.role || a.text !== b.text) return false;
  if (a.role === "tool") return b.role === "tool" && a.toolCallId === b.toolCallId;
  if (a.role !== "assistant") return true;
  return (
    b.role === "assistant" &&
    a.toolCalls.length === b.toolCalls.length &&
    a.toolCalls.every((call, at) => {
      const other = b.toolCalls[at]!;
      return call.id === other.id && call.name === other.name && call.arguments === other.arguments;
    })
  );
}

function charactersOf(message: Message): number {
  if (message.role !== "assistant") return message.text.length;
  const called = message.toolCalls.reduce((sum, call) => sum + call.arguments.length, 0);
  return message.text.length + message.reasoning.length + called;
}
