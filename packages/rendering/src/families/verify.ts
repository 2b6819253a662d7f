/**
 * Owns the verification of a checkpoint's chat template, on the CPU and without weights: each conversation is
 * played as a session plays it, turn by turn with only what is new rendered, and compared with the template's
 * rendering of the whole conversation at its end. Says where they are equal, and where the policy `keep` differs
 * from rendering anew, which for templates that rewrite history is its purpose.
 */
import type { Message } from "@mortise/capture";
import type { ChatTemplate, Tokenizer } from "@mortise/policy";
import { Renderer, type RenderingPolicy } from "../render/renderer.js";
import type { TemplateTraits } from "../render/traits.js";
import { toolFormatOf } from "../tools/format.js";
import { ReplyParser } from "../tools/reply-parser.js";
import type { ToolFormat } from "../tools/types.js";
import { type NamedConversation, verificationConversations } from "./conversations.js";
import { type FamilyProfile, familyOf } from "./registry.js";

export interface VerifyParts {
  readonly tokenizer: Tokenizer;
  readonly chatTemplate: ChatTemplate;
  readonly eosIds: ReadonlySet<number>;
  readonly tokenizerConfigJson: string;
  readonly modelType: string | undefined;
  readonly policy?: RenderingPolicy;
  readonly variables?: Readonly<Record<string, unknown>>;
  readonly generated?: number;
}

/**
 * `equal`: ids equal those of the whole rendering. `equal-text`: text equals, and so do the ids but where a
 * sampled reply meets what the template opened for it: the policy's own tokens there. `rewritten`: equal but for replies the template writes
 * differently by now. `refused`: the template refuses the conversation. `unequal`: a fault.
 */
export type CaseOutcome = "equal" | "equal-text" | "rewritten" | "refused" | "unequal";

export interface VerifiedCase {
  readonly name: string;
  readonly outcome: CaseOutcome;
  /** Ids of the conversation as a session has them. */
  readonly tokens: number;
  /** Of `rewritten`: which replies. Of `unequal`: the beginning of what is not where it should be. */
  readonly detail: string;
  /** Replies whose text, reasoning and calls do not come back from their ids. */
  readonly misread: readonly number[];
}

export interface TemplateVerification {
  readonly family: string | undefined;
  readonly traits: TemplateTraits;
  readonly history: string;
  readonly lateSystem: string;
  readonly calls: string | undefined;
  /** Where the template is not what its family's profile says. */
  readonly deviations: readonly string[];
  readonly cases: readonly VerifiedCase[];
  /** No case is unequal or misread. */
  readonly isSound: boolean;
}

const SEED = 7;
const GENERATED = 40;
/** Characters of a text that is not where it should be. */
const EXCERPT = 80;

type Reply = Message & { role: "assistant" };

/** @throws MortiseError when the renderer or the call syntax is refused */
export function verifyTemplate(parts: VerifyParts): TemplateVerification {
  const { tokenizer, chatTemplate, eosIds, tokenizerConfigJson, modelType } = parts;
  const renderer = new Renderer(parts);
  const format = toolFormatOf({ tokenizerConfigJson, tokenizer, renderer, stopIds: eosIds });
  const profile = familyOf({ tokenizer, template: chatTemplate.source, modelType });
  const conversations = verificationConversations({
    hasCalls: format !== undefined,
    isSingleCall: profile?.isSingleCall ?? format?.close === undefined,
    seed: SEED,
    generated: parts.generated ?? GENERATED,
    hasReasoning: !renderer.traits.closesReasoning,
  });
  const player = new Player({ tokenizer, eosIds, renderer, format });
  const cases = conversations.map((conversation) => player.verify(conversation));
  return {
    family: profile?.name,
    traits: renderer.traits,
    history: renderer.history,
    lateSystem: renderer.lateSystem,
    calls: format?.name,
    deviations: profile ? deviationsFrom(profile, renderer.traits, format, tokenizer, eosIds) : [],
    cases,
    isSound: cases.every((one) => one.outcome !== "unequal" && one.misread.length === 0),
  };
}

/** A conversation as a session holds it: what was rendered, and what was sampled between. */
interface Played {
  readonly ids: number[];
  /** Texts the proxy rendered: the first prompt, then what follows each reply, its end-of-turn token first. */
  readonly rendered: string[];
  /** Texts of the replies between, without it. */
  readonly said: string[];
  /** The session began anew on its way: what stands before is a whole rendering of an earlier time. */
  isAnew: boolean;
  readonly misread: number[];
}

class Player {
  private readonly parts: {
    readonly tokenizer: Tokenizer;
    readonly eosIds: ReadonlySet<number>;
    readonly renderer: Renderer;
    readonly format: ToolFormat | undefined;
  };

  constructor(parts: Player["parts"]) {
    this.parts = parts;
  }

  verify(conversation: NamedConversation): VerifiedCase {
    const { name } = conversation;
    const whole = this.attempt(() => this.parts.renderer.renderWhole(conversation));
    const played = whole && this.attempt(() => this.play(conversation));
    if (!whole || !played) return { name, outcome: "refused", tokens: 0, detail: "", misread: [] };
    const { ids, misread } = played;
    const compared = isSameIds(ids, whole.ids)
      ? { outcome: "equal" as const, detail: "" }
      : this.compare(played, this.parts.tokenizer.decode(whole.ids));
    return { name, tokens: ids.length, misread, ...compared };
  }

  private play(conversation: NamedConversation): Played {
    const { renderer, tokenizer } = this.parts;
    const { messages, tools } = conversation;
    const replies = messages.flatMap((message, at) => (message.role === "assistant" ? [at] : []));
    const first = renderer.renderWhole({ messages: messages.slice(0, replies[0]), tools });
    const played: Played = {
      ids: [...first.ids],
      rendered: [tokenizer.decode(first.ids)],
      said: [],
      isAnew: false,
      misread: [],
    };
    for (const [ordinal, at] of replies.entries()) {
      const reply = messages[at] as Reply;
      const sampled = this.sample(reply, conversation);
      if (!this.isReadBack(reply, sampled, conversation)) played.misread.push(ordinal);
      const next = replies[ordinal + 1] ?? messages.length;
      const seen = { messages: messages.slice(0, next), tools };
      const added = renderer.renderExtension(seen, at + 1, true);
      if (added) {
        played.ids.push(...sampled, ...added.ids);
        played.said.push(tokenizer.decode(sampled.slice(0, -1)));
        played.rendered.push(tokenizer.decode([sampled.at(-1)!, ...added.ids]));
      } else {
        // The policy starts a branch here: nothing of the session's ids is kept.
        const anew = renderer.renderWhole(seen);
        played.ids.splice(0, played.ids.length, ...anew.ids);
        played.rendered.splice(0, played.rendered.length, tokenizer.decode(anew.ids));
        played.said.length = 0;
        played.isAnew = true;
      }
    }
    return played;
  }

  /** The reply as a policy would sample it that writes what the template does, up to its end-of-turn token. */
  private sample(reply: Reply, { tools }: NamedConversation): number[] {
    const { renderer, tokenizer, eosIds } = this.parts;
    const ids = [...tokenizer.encode(renderer.writer.reply(reply, tools))];
    return ids.slice(0, ids.findIndex((id) => eosIds.has(id)) + 1);
  }

  private isReadBack(reply: Reply, ids: readonly number[], { tools }: NamedConversation): boolean {
    const { renderer, tokenizer, eosIds, format } = this.parts;
    const { reasoning, opensInReasoning } = renderer.traits;
    const parser = new ReplyParser({
      tokenizer,
      format,
      tools,
      reasoning,
      opensInReasoning,
      stopIds: eosIds,
    });
    const read = { text: "", reasoning: "", calls: [] as { name: string; arguments: string }[] };
    for (const part of [...parser.push(ids), ...parser.end()]) {
      if (part.kind === "call-start") read.calls.push({ name: part.name, arguments: "" });
      else if (part.kind === "call-arguments") read.calls[part.call]!.arguments += part.text;
      else if (part.kind !== "call-end") read[part.kind] += part.text;
    }
    // Templates trim, and what they leave out (text beside a call, reasoning) cannot come back.
    const written = tokenizer.decode(ids);
    for (const kind of ["text", "reasoning"] as const) {
      const isWritten = written.includes(reply[kind].trim());
      if (read[kind].trim() !== (isWritten ? reply[kind].trim() : "")) return false;
    }
    if (read.calls.length !== reply.toolCalls.length) return false;
    return reply.toolCalls.every((call, at) => {
      const found = read.calls[at]!;
      return found.name === call.name && isSameJson(found.arguments, call.arguments);
    });
  }

  /**
   * Everything the proxy rendered must stand in the whole rendering, in its order, with nothing but replies
   * between. What a prompt adds behind the assistant's header (an opened or closed reasoning mark) belongs to
   * the reply there.
   */
  private compare(
    { rendered, said, isAnew }: Played,
    whole: string,
  ): { outcome: CaseOutcome; detail: string } {
    const opening = this.replyOpening();
    const rewritten: number[] = [];
    let at = 0;
    for (const [ordinal, text] of rendered.entries()) {
      // Replies in it may be written differently by now; what was added since must still be found.
      if (ordinal === 0 && isAnew) continue;
      const isLast = ordinal === rendered.length - 1;
      const core = isLast ? text : text.slice(0, text.length - opening.length);
      const found = ordinal === 0 && !whole.startsWith(core) ? -1 : whole.indexOf(core, at);
      if (found < 0) return { outcome: "unequal", detail: JSON.stringify(core.slice(0, EXCERPT)) };
      const isSaid = whole.slice(at, found) === opening + said[ordinal - 1];
      if (ordinal > 0 && !isSaid) rewritten.push(ordinal - 1);
      at = found + core.length;
    }
    const rest = whole.slice(at);
    if (rest === "" && rewritten.length === 0 && this.isJoined(rendered, said, opening, whole))
      return { outcome: "equal-text", detail: "" };
    if (rest !== "" || rewritten.length === 0)
      return { outcome: "unequal", detail: JSON.stringify(rest.slice(0, EXCERPT)) };
    return { outcome: "rewritten", detail: `replies ${rewritten.join(", ")}` };
  }

  /** Whether the ids are those of the whole once each reply is encoded with what the template opened for it. */
  private isJoined(rendered: readonly string[], said: readonly string[], opening: string, whole: string) {
    const { tokenizer } = this.parts;
    const ids = rendered.flatMap((text, ordinal) => {
      const isLast = ordinal === rendered.length - 1;
      const core = isLast ? text : text.slice(0, text.length - opening.length);
      return [...tokenizer.encode(core), ...(isLast ? [] : tokenizer.encode(opening + said[ordinal]))];
    });
    return isSameIds(ids, tokenizer.encode(whole));
  }

  /** What a prompt adds behind the assistant's header as history shows it. */
  private replyOpening(): string {
    const { writer } = this.parts.renderer;
    const user: Message = { role: "user", text: "x" };
    const reply: Message = { role: "assistant", text: "y", reasoning: "", toolCalls: [] };
    const before = writer.text([user], [], false).length;
    const prompt = writer.text([user], [], true).slice(before);
    const history = writer.text([user, reply, user], [], false).slice(before);
    let header = 0;
    while (header < prompt.length && prompt[header] === history[header]) header++;
    return prompt.slice(header);
  }

  private attempt<T>(render: () => T): T | undefined {
    try {
      return render();
    } catch (error) {
      if ((error as { code?: string }).code === "MORTISE_PROVIDER_BAD_REQUEST") return undefined;
      throw error;
    }
  }
}

function deviationsFrom(
  profile: FamilyProfile,
  traits: TemplateTraits,
  format: ToolFormat | undefined,
  tokenizer: Tokenizer,
  eosIds: ReadonlySet<number>,
): string[] {
  const inReply = traits.reasoning ? "in-reply" : "none";
  const reasoning = traits.opensInReasoning ? "opened-in-prompt" : inReply;
  const compared: [string, unknown, unknown][] = [
    ["calls", profile.calls, format?.name],
    ["reasoning", traits.closesReasoning ? reasoning : profile.reasoning, reasoning],
    ["append-only", profile.isAppendOnly, traits.isAppendOnly],
    ["keep", profile.history.includes("keep"), traits.isTailStable],
    ["late system", profile.takesLateSystem, traits.takesLateSystem],
  ];
  for (const token of profile.endTokens) {
    const id = tokenizer.idOf(token);
    compared.push([`end token ${token}`, true, id !== undefined && eosIds.has(id)]);
  }
  return compared
    .filter(([, expected, found]) => expected !== found)
    .map(([what, expected, found]) => `${what}: ${profile.name} has ${expected}, this template ${found}`);
}

function isSameIds(a: readonly number[], b: Int32Array): boolean {
  return a.length === b.length && a.every((id, at) => b[at] === id);
}

function isSameJson(a: string, b: string): boolean {
  try {
    return JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b));
  } catch {
    return false;
  }
}
