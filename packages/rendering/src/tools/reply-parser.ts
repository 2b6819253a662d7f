/**
 * Owns turning sampled ids into the parts of a reply while they arrive: text, reasoning, tool calls, and the
 * number of ids up to each call's end. A call is announced as soon as its name is certain; until then it is held
 * back, and what turns out to spell no call stays text, whole. Does not mint ids and writes no wire format.
 *
 *  - A call inside reasoning ends the reasoning (`call-inside-reasoning` in `notes`); the closing mark of the
 *    reasoning, if it comes later, means nothing.
 *  - A call that is cut off has no call-end. One that lacks only its closing mark has, when the policy went on to
 *    something else: ended its turn, opened another call.
 *  - Marks that mean nothing where they stand are text.
 *
 * The same ids give the same parts however they are cut, so a reply is rebuilt from the journal (C6).
 */
import type { SampledPart, ToolSchema } from "@mortise/capture";
import type { Tokenizer } from "@mortise/policy";
import { type Lexeme, Lexer, type Mark } from "./lexer.js";
import { Prose } from "./prose.js";
import type { CallReader, ReasoningMarks, ToolFormat } from "./types.js";

export interface ReplySyntax {
  readonly tokenizer: Tokenizer;
  /** Undefined when the request offers no tools: then no call is looked for. */
  readonly format: ToolFormat | undefined;
  readonly tools: readonly ToolSchema[];
  /** Absent for policies that do not mark reasoning. */
  readonly reasoning?: ReasoningMarks | undefined;
  /** The prompt ended inside reasoning: the reply goes on with it. */
  readonly opensInReasoning?: boolean;
  /** Ids that end the turn; they are sampled and trained, and never shown. */
  readonly stopIds: ReadonlySet<number>;
}

/** What a parser noticed that the parts do not tell. */
export type ReplyNote = "call-inside-reasoning";

interface OpenCall {
  readonly reader: CallReader;
  /** Ids before its first, where the mark that opened it is one id. */
  readonly tokenStart: number | undefined;
  /** What would be text if this were no call. */
  readonly held: Lexeme[];
  /** Ids since it opened, while it is undecided inside reasoning. */
  undecidedIds: number;
  ordinal: number | undefined;
  /** Ids up to where it was complete but for its closing mark. */
  completeAt: number | undefined;
  /** What stands between its end and its closing mark. */
  rest: string;
}

export class ReplyParser {
  private readonly syntax: ReplySyntax;
  private readonly lexer: Lexer;
  private readonly prose = new Prose();
  private readonly noted = new Set<ReplyNote>();
  private call: OpenCall | undefined;
  private count = 0;
  private calls = 0;
  private inReasoning = 0;
  private isStopped = false;
  /** Reasoning was ended by a call, so its closing mark is still to come. */
  private owesClose = false;

  constructor(syntax: ReplySyntax) {
    this.syntax = syntax;
    this.lexer = new Lexer(syntax.tokenizer, marksOf(syntax));
    if (syntax.reasoning && syntax.opensInReasoning) this.prose.passMark("reasoning");
  }

  /** Ids inside reasoning so far, its marks included. */
  get reasoningTokens(): number {
    return this.inReasoning;
  }

  get notes(): readonly ReplyNote[] {
    return [...this.noted];
  }

  /** The parts that became certain with these ids. */
  push(ids: Iterable<number>): SampledPart[] {
    const parts: SampledPart[] = [];
    for (const id of ids) {
      this.count++;
      if (this.syntax.stopIds.has(id)) this.isStopped = true;
      else this.take(id, parts);
    }
    return joinDeltas(parts);
  }

  /** What is left at the end of the turn. */
  end(): SampledPart[] {
    const parts: SampledPart[] = [];
    for (const lexeme of this.lexer.flush()) this.read(lexeme, parts);
    const call = this.call;
    this.call = undefined;
    if (call && call.ordinal === undefined) this.sayHeld(call, parts);
    else if (call?.completeAt !== undefined && (this.isStopped || call.rest.trim() !== "")) {
      call.reader.close();
      this.endCall(call, call.completeAt, parts);
    }
    this.prose.end(parts);
    return joinDeltas(parts);
  }

  private take(id: number, parts: SampledPart[]): void {
    const wasReasoning = this.prose.isReasoning;
    const before = this.call;
    for (const lexeme of this.lexer.push(id)) this.read(lexeme, parts);
    if (!wasReasoning && !this.prose.isReasoning) return;
    if (this.call && this.call.ordinal === undefined) this.call.undecidedIds++;
    else if (this.prose.isReasoning || before?.ordinal === undefined) this.inReasoning++;
  }

  private read(lexeme: Lexeme, parts: SampledPart[]): void {
    if (this.call) this.readCall(this.call, lexeme, parts);
    else if (lexeme.kind === "text") this.readText(lexeme, parts);
    else this.readMark(lexeme, parts);
  }

  private readText(lexeme: Lexeme, parts: SampledPart[]): void {
    const { format } = this.syntax;
    const isBare = format?.bareStart && this.prose.isEmpty && !this.prose.isReasoning && this.calls === 0;
    if (isBare && lexeme.text.trimStart().startsWith(format.bareStart!)) {
      this.openCall([]);
      this.readCall(this.call!, lexeme, parts);
    } else this.prose.say(lexeme.text, parts);
  }

  private readMark(lexeme: Lexeme & { kind: "mark" }, parts: SampledPart[]): void {
    const { isReasoning } = this.prose;
    if (lexeme.mark === "call-open") this.openCall([lexeme]);
    else if (lexeme.mark === "reasoning-open" && !isReasoning) this.prose.passMark("reasoning");
    else if (lexeme.mark === "reasoning-close" && (isReasoning || this.owesClose)) {
      this.owesClose = false;
      this.prose.passMark("text");
    } else this.prose.say(lexeme.text, parts);
  }

  private openCall(held: Lexeme[]): void {
    const reader = this.syntax.format!.reader(this.syntax.tools);
    const [opening] = held;
    const tokenStart = opening?.kind === "mark" && opening.isToken ? this.count - 1 : undefined;
    this.call = {
      reader,
      tokenStart,
      held,
      undecidedIds: 0,
      ordinal: undefined,
      completeAt: undefined,
      rest: "",
    };
  }

  private readCall(call: OpenCall, lexeme: Lexeme, parts: SampledPart[]): void {
    if (lexeme.kind === "mark" && lexeme.mark === "call-close") this.closeCall(call, lexeme, parts);
    else if (lexeme.kind === "mark" && lexeme.mark === "call-open" && call.completeAt !== undefined) {
      call.reader.close();
      this.endCall(call, call.completeAt, parts);
      this.openCall([lexeme]);
    } else this.feedCall(call, lexeme, parts);
  }

  private feedCall(call: OpenCall, lexeme: Lexeme, parts: SampledPart[]): void {
    call.rest += call.reader.push(lexeme.text);
    if (call.reader.hasFailed) {
      this.call = undefined;
      this.sayHeld(call, parts);
      this.sayFailing(lexeme, parts);
      return;
    }
    if (call.ordinal === undefined) call.held.push(lexeme);
    this.announce(call, parts);
    if (call.reader.isComplete) call.completeAt ??= this.count;
    if (call.completeAt === undefined || this.syntax.format!.close !== undefined) return;
    call.reader.close();
    this.endCall(call, call.completeAt, parts);
  }

  private closeCall(call: OpenCall, lexeme: Lexeme, parts: SampledPart[]): void {
    call.reader.close();
    if (!call.reader.hasFailed) {
      this.announce(call, parts);
      this.endCall(call, this.count, parts);
      return;
    }
    this.call = undefined;
    this.sayHeld(call, parts);
    this.prose.say(lexeme.text, parts);
  }

  /** Starts the call once its name is certain; then gives what there is of its arguments. */
  private announce(call: OpenCall, parts: SampledPart[]): void {
    const { name } = call.reader;
    if (name === undefined) return;
    if (call.ordinal === undefined) {
      if (this.prose.isReasoning) {
        this.noted.add("call-inside-reasoning");
        this.owesClose = true;
      }
      this.prose.passMark("text");
      call.ordinal = this.calls++;
      call.held.length = 0;
      const { tokenStart } = call;
      const start = { kind: "call-start", call: call.ordinal, name } as const;
      parts.push(tokenStart === undefined ? start : { ...start, tokenStart });
    }
    this.giveArguments(call, parts);
  }

  private giveArguments(call: OpenCall, parts: SampledPart[]): void {
    const text = call.reader.takeArguments();
    if (text !== "") parts.push({ kind: "call-arguments", call: call.ordinal!, text });
  }

  private endCall(call: OpenCall, tokenEnd: number, parts: SampledPart[]): void {
    this.call = undefined;
    this.giveArguments(call, parts);
    parts.push({ kind: "call-end", call: call.ordinal!, tokenEnd });
    if (call.rest.trim() !== "") this.prose.say(call.rest, parts);
  }

  /** It was no call: what was held back is said after all. Openings inside it open nothing. */
  private sayHeld(call: OpenCall, parts: SampledPart[]): void {
    if (this.prose.isReasoning) this.inReasoning += call.undecidedIds;
    for (const lexeme of call.held)
      if (lexeme.kind === "text" || lexeme.mark === "call-open") this.prose.say(lexeme.text, parts);
      else this.readMark(lexeme, parts);
  }

  /** What made a call fail may open the next one; text that failed as a bare call is text. */
  private sayFailing(lexeme: Lexeme, parts: SampledPart[]): void {
    if (lexeme.kind === "text") this.prose.say(lexeme.text, parts);
    else this.read(lexeme, parts);
  }
}

function marksOf({ format, reasoning }: ReplySyntax): Map<string, Mark> {
  const marks = new Map<string, Mark>();
  for (const text of format?.open ?? []) marks.set(text, "call-open");
  if (format?.close !== undefined) marks.set(format.close, "call-close");
  if (reasoning) marks.set(reasoning.open, "reasoning-open").set(reasoning.close, "reasoning-close");
  return marks;
}

/** One part for deltas of one kind that follow each other. */
function joinDeltas(parts: readonly SampledPart[]): SampledPart[] {
  const joined: SampledPart[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (last?.kind === part.kind && "text" in part && "text" in last)
      joined[joined.length - 1] = { ...last, text: last.text + part.text };
    else joined.push(part);
  }
  return joined;
}
