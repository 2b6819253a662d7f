/**
 * Owns the policy a harness talks to during a case: it reads the conversation it is given, as text, and answers
 * with the next planned reply. What was already reached stands in the conversation itself (marks in texts and
 * commands), so the policy stays right when the harness drops, repeats, rewrites or compacts its history.
 */
import type { ToolVocabulary } from "@mortise/harness";
import type { Tokenizer } from "@mortise/policy";
import type { GenerateRequest, ScriptedReply } from "@mortise/proxy";
import { MARK, markIn, type Plan, type PlannedReply, SIDE_MARK, SIDE_PROMPT, usesOf } from "./plan.js";
import { END_OF_TURN, replyText, TOOLS_HEADING, TURN_OPENING } from "./policy-files.js";

const SUMMARY_OPENING = "Reached so far:";

/** What the policy was asked and what it played. */
export interface Played {
  readonly request: GenerateRequest;
  readonly reply: ScriptedReply;
  readonly kind: "main" | "side" | "summary";
  /** The planned reply's fault, when it was played. */
  readonly fault: PlannedReply["fault"];
  /** The call failed on purpose: no turn comes of it. */
  readonly isFailure: boolean;
}

export interface PlayedPolicyOptions {
  readonly tokenizer: Tokenizer;
  readonly vocabulary: ToolVocabulary;
  readonly plan: Plan;
}

export class PlayedPolicy {
  readonly played: Played[] = [];
  private readonly options: PlayedPolicyOptions;
  /** Faults happen once: a second call at the same place gets the reply whole. */
  private readonly spent = new Set<PlannedReply>();

  constructor(options: PlayedPolicyOptions) {
    this.options = options;
  }

  readonly choose = (request: GenerateRequest): ScriptedReply => {
    const messages = parseContext(this.options.tokenizer.decode(request.contextIds));
    const { kind, planned, text } = this.answer(messages);
    const fault = planned !== undefined && !this.spent.has(planned) ? planned.fault : undefined;
    if (planned) this.spent.add(planned);
    const reply = this.replyOf(text, fault);
    this.played.push({ request, reply, kind, fault, isFailure: reply.failAfter !== undefined });
    return reply;
  };

  private answer(messages: readonly ContextMessage[]) {
    const { vocabulary, plan } = this.options;
    const reached = highestMark(messages, MARK);
    if (wantsSummary(messages))
      return { kind: "summary" as const, planned: undefined, text: summaryOf(reached) };
    const isSide = messages.some(({ role, text }) => role === "user" && text.includes(SIDE_PROMPT));
    const mark = isSide ? SIDE_MARK : MARK;
    const replies = (isSide ? plan.side : plan.main) ?? [];
    const next = highestMark(messages, mark) + 1;
    const planned = replies.find((reply) => next >= reply.from && next <= reply.to);
    const kind = isSide ? ("side" as const) : ("main" as const);
    const waiting = isSide ? undefined : vocabulary.awaitDelegate?.(messages.at(-2)?.text ?? "");
    if (waiting) return { kind, planned: undefined, text: replyText("", [waiting]) };
    if (!planned) return { kind, planned, text: lastReply(vocabulary, isSide) };
    const uses = usesOf({ ...planned, from: next }, mark, vocabulary);
    return { kind, planned, text: replyText(planned.text ?? `Next is ${markIn(mark, next)}.`, uses) };
  }

  private replyOf(text: string, fault: PlannedReply["fault"]): ScriptedReply {
    const { tokenizer } = this.options;
    const encode = (part: string) => [...tokenizer.encode(part)];
    const whole = encode(`${text}${END_OF_TURN}`);
    switch (fault?.kind) {
      case undefined:
        return { ids: whole };
      case "slow":
        return { ids: whole, firstTokenMs: fault.ms };
      case "engine-fails":
        return { ids: whole, failAfter: fault.afterTokens };
      case "stops-in-text":
        return { ids: encode(text.split("<tool_call>")[0]!.trimEnd()) };
      case "stops-in-call":
        // Inside the arguments: the name is known by then, the object is not closed.
        return { ids: encode(text.slice(0, text.lastIndexOf('"}'))) };
      case "cut-at-start":
        return { ids: whole, holdAfter: 2 };
      case "cut-behind-call": {
        const close = "</tool_call>";
        const behind = encode(text.slice(0, text.indexOf(close) + close.length));
        return { ids: whole, holdAfter: behind.length };
      }
    }
  }
}

interface ContextMessage {
  readonly role: string;
  readonly text: string;
}

/** Messages of a rendered context, the last one open. */
function parseContext(text: string): ContextMessage[] {
  return text
    .split(TURN_OPENING)
    .slice(1)
    .map((part) => {
      const [role = "", ...rest] = part.split("\n");
      return { role, text: rest.join("\n").split(END_OF_TURN)[0]! };
    });
}

/** Marks in what harnesses say of themselves do not count: system messages are theirs. */
function highestMark(messages: readonly ContextMessage[], mark: string): number {
  const pattern = new RegExp(`\\b${mark}-(\\d+)\\b`, "g");
  const found = messages
    .filter(({ role }) => role !== "system")
    .flatMap(({ text }) => [...text.matchAll(pattern)].map((match) => Number(match[1])));
  return Math.max(0, ...found);
}

/** A call without tools is a title or a summary; with tools, one whose last word asks for a summary. */
function wantsSummary(messages: readonly ContextMessage[]): boolean {
  const hasTools = messages.some(({ role, text }) => role === "system" && text.startsWith(TOOLS_HEADING));
  if (!hasTools) return true;
  const asked = messages.at(-2);
  if (asked?.role !== "user" || asked.text.includes(SIDE_PROMPT)) return false;
  // A conversation that begins anew with our own summary asks for none.
  return /\bsummary\b/i.test(asked.text) && !asked.text.includes(SUMMARY_OPENING);
}

/** In the tags some harnesses look for, so that none asks a second time. */
function summaryOf(reached: number): string {
  return `<summary>\n${SUMMARY_OPENING} ${markIn(MARK, reached)}. Go on with the next one.\n</summary>`;
}

function lastReply(vocabulary: ToolVocabulary, isSide: boolean): string {
  if (isSide) return "The errand is done.";
  const message = "Every milestone is reached.";
  return vocabulary.finish ? replyText("", [vocabulary.finish(message)]) : message;
}
