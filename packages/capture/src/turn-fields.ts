/**
 * Owns what a turn record says about its alignment, so that the tree is rebuilt from the journal alone. Does
 * not know ids or sampling; the proxy adds those.
 */
import type { Alignment } from "./align.js";
import { type AuditNote, type Call, lastUserText } from "./call.js";
import { openingSystems, type TextDigest, textDigest } from "./digests.js";

/** Texts shorter than this cannot be a sub-agent's prompt. */
const MIN_TEXT_LENGTH = 8;

/** @param isKept whether the context begins with the parent's ids; a history rendered whole keeps none */
export function alignmentFields(
  { digests, signals, conversation }: Call,
  alignment: Alignment,
  { isKept, audit }: { isKept: boolean; audit: readonly AuditNote[] },
) {
  const keptMessages = isKept ? alignment.keptMessages : 0;
  const last = lastUserText(conversation);
  return {
    thread: alignment.thread,
    relation: alignment.relation,
    role: alignment.role,
    roleReason: alignment.roleReason,
    purpose: alignment.purpose,
    parent: isKept ? (alignment.parent?.turn ?? "") : "",
    prefixLength: isKept ? alignment.prefixLength : 0,
    follows: alignment.follows ?? "",
    spawnedBy: alignment.spawnedBy ?? "",
    retryOf: alignment.retryOf ?? "",
    flags: [...alignment.flags],
    keptMessages,
    messageDigests: digests.messages.slice(keptMessages).map((message) => message.digest),
    openingSystems: openingSystems(digests.messages),
    toolsDigest: digests.tools,
    bodyDigest: digests.body,
    historyDigest: digests.history.whole,
    ...(last && { lastUserText: last.text, lastUserMessage: last.message }),
    harness: signals.harness,
    agent: signals.agent ?? "",
    harnessSession: signals.session ?? "",
    window: signals.window ?? "",
    model: signals.model ?? "",
    audit: audit.map(({ what, field }) => ({ what, field })),
  };
}

/** Texts among a call's arguments, by which an agent that it starts is recognised. */
export function argumentTexts(argumentText: string): TextDigest[] {
  let given: unknown;
  try {
    given = JSON.parse(argumentText);
  } catch {
    return [];
  }
  if (typeof given !== "object" || given === null) return [];
  return Object.values(given)
    .filter((value): value is string => typeof value === "string" && value.length >= MIN_TEXT_LENGTH)
    .map(textDigest);
}
