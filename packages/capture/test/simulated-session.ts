/**
 * A scripted harness and engine for property tests: it plays random moves that real harnesses make (extend,
 * reject, adopt part of the calls or the text before them, rewrite history, ask again, respell arguments, offer
 * other tools), by several agents in turn, against a TurnTree, and keeps, on its own, the ids the engine was
 * given. Every sampled id is globally unique, so a test can find it.
 */
import { create } from "@bufbuild/protobuf";
import {
  Delivery,
  FinishReason,
  type SessionSealed,
  SessionSealedSchema,
  type Turn,
  TurnRole,
  TurnSchema,
} from "@mortise/contracts";
import fc from "fast-check";
import {
  type Alignment,
  align,
  alignmentFields,
  type Call,
  type Conversation,
  callerOf,
  digestRequest,
  digestText,
  type Message,
  NO_SIGNALS,
  normaliseConversation,
  packIds,
  packLogProbabilities,
  TurnTree,
} from "../src/index.js";

export interface Move {
  kind: "extend" | "reject" | "partial" | "text-only" | "rewrite" | "re-ask" | "respell" | "fork" | "retool";
  /** 0 is the main agent. */
  agent: number;
  from: number;
  calls: number;
  tokens: number;
  isAbandoned: boolean;
  role: TurnRole;
}

export const moves: fc.Arbitrary<Move[]> = fc.array(
  fc.record({
    kind: fc.constantFrom<Move["kind"]>(
      "extend",
      "extend",
      "reject",
      "partial",
      "text-only",
      "rewrite",
      "re-ask",
      "respell",
      "fork",
      "retool",
    ),
    agent: fc.constantFrom(0, 0, 0, 1, 2),
    from: fc.nat(),
    calls: fc.integer({ min: 0, max: 3 }),
    tokens: fc.integer({ min: 1, max: 4 }),
    isAbandoned: fc.boolean(),
    role: fc.constantFrom(TurnRole.TRAIN, TurnRole.TRAIN, TurnRole.TRAIN, TurnRole.EXCLUDED),
  }),
  { minLength: 1, maxLength: 12 },
);

export interface PlayedTurn {
  turn: Turn;
  request: Message[];
  reply: Extract<Message, { role: "assistant" }>;
  seen: number[];
  sampled: number[];
}

const TOOLS = [{ name: "edit", description: "", parameters: { type: "object" } }];
const MORE_TOOLS = [...TOOLS, { name: "find", description: "", parameters: { type: "object" } }];

export class SimulatedSession {
  readonly tree = new TurnTree();
  readonly played: PlayedTurn[] = [];
  readonly delivery = new Map<string, Delivery>();
  /** Told of every call and where it was put, before its turn joins the tree. */
  onCall: (call: Call, at: Alignment) => void = () => {};
  private nextId = 1000;
  private nextWord = 0;

  play(move: Move): void {
    const own = this.played.filter((one) => one.turn.agent === agentName(move.agent));
    const from = own.length === 0 ? undefined : own[move.from % own.length]!;
    this.ask(from ? this.requestAfter(from, move) : [this.user()], move);
  }

  private requestAfter(from: PlayedTurn, move: Move): Message[] {
    const { request, reply } = from;
    if (move.kind === "reject") return [...request, this.user()];
    if (move.kind === "rewrite") return [this.user(), ...request.slice(1), this.user()];
    if (move.kind === "re-ask") return request;
    if (move.kind === "text-only") {
      const echo: Message = { role: "assistant", text: ` ${reply.text}\n`, reasoning: "", toolCalls: [] };
      return [...request, echo, this.user()];
    }
    const keep = move.kind === "partial" ? reply.toolCalls.length - 1 : reply.toolCalls.length;
    const calls = reply.toolCalls
      .slice(0, Math.max(keep, Math.min(1, reply.toolCalls.length)))
      .map((call) => (move.kind === "respell" ? { ...call, name: "other", arguments: "{ }" } : call));
    const results = calls
      .map((call) => ({ role: "tool" as const, text: "ok", toolCallId: call.id }))
      .reverse();
    const text = calls.length > 0 && move.kind === "respell" ? "" : reply.text;
    const echo: Message = { role: "assistant", text, reasoning: "", toolCalls: calls };
    return [...request, echo, ...results, this.user()];
  }

  private ask(messages: Message[], move: Move): void {
    const tools = move.kind === "retool" ? MORE_TOOLS : TOOLS;
    const conversation: Conversation = normaliseConversation({ messages, tools });
    const agent = agentName(move.agent) || undefined;
    const signals = { ...NO_SIGNALS, namesAgents: true, agent };
    const call = { conversation, digests: digestRequest(conversation, null, callerOf(signals)), signals };
    const at = this.align(this.tree, call);
    this.onCall(call, at);
    const parent = this.played.find((one) => one.turn.turn === at.parent?.turn);
    const kept = parent ? [...parent.seen, ...parent.sampled].slice(0, at.prefixLength) : [];
    const suffix = conversation.messages.slice(at.keptMessages).map((_, k) => 1 + ((this.nextId + k) % 7));
    const { sampled, ends } = this.sample(move);
    const index = this.played.length;
    const toolCalls = ends.map((tokenEnd, k) => ({
      id: `c${index}_${k}`,
      name: "edit",
      tokenEnd,
      tokenStart: ends[k - 1] ?? 1,
    }));
    const text = this.word();
    const turn = create(TurnSchema, {
      run: "r",
      trial: "t",
      session: "t",
      ...alignmentFields(call, at, { isKept: at.parent !== undefined, audit: [] }),
      turn: `t-${index}`,
      index,
      role: move.role,
      suffixIds: packIds(suffix),
      sampledIds: packIds(sampled),
      logProbabilities: packLogProbabilities(sampled.map((id) => -id / 1e6)),
      spans: [{ start: 0, length: sampled.length, policyVersion: BigInt(index) }],
      finish: FinishReason.STOP,
      toolCalls,
      textDigest: digestText(text),
    });
    this.tree.add(turn);
    this.delivery.set(turn.turn, move.isAbandoned ? Delivery.ABANDONED : Delivery.DELIVERED);
    const reply = {
      role: "assistant" as const,
      text,
      reasoning: "",
      toolCalls: toolCalls.map((call) => ({ id: call.id, name: call.name, arguments: "{}" })),
    };
    this.played.push({ turn, request: messages, reply, seen: [...kept, ...suffix], sampled });
  }

  align(tree: TurnTree, call: Call): Alignment {
    return align(tree, call, { deliveryOf: (turn) => this.delivery.get(turn) ?? Delivery.UNDECIDED });
  }

  private sample(move: Move): { sampled: number[]; ends: number[] } {
    const sampled: number[] = [];
    const ends: number[] = [];
    const take = (count: number) => {
      for (let k = 0; k < count; k++) sampled.push(this.nextId++);
    };
    // The text before the calls.
    if (move.calls > 0) take(1);
    for (let call = 0; call < move.calls; call++) {
      take(move.tokens);
      ends.push(sampled.length);
    }
    take(1);
    return { sampled, ends };
  }

  private user(): Message {
    return { role: "user", text: this.word() };
  }

  private word(): string {
    return `w${this.nextWord++}`;
  }

  seal(): SessionSealed {
    return create(SessionSealedSchema, {
      run: "r",
      trial: "t",
      session: "t",
      sampledTokens: BigInt(this.played.reduce((n, one) => n + one.sampled.length, 0)),
      lastSequence: BigInt(this.played.length),
      turns: this.played.map((one, at) => ({
        turn: one.turn.turn,
        sequence: BigInt(at + 1),
        sampledTokens: one.sampled.length,
        delivery: this.delivery.get(one.turn.turn)!,
      })),
    });
  }
}

/** As a turn record names it. */
function agentName(agent: number): string {
  return agent === 0 ? "" : `agent-${agent}`;
}
