/**
 * Owns what is remembered of a session's calls and the threads they make: the first try of every body, what a
 * thread was last asked for, how conversations opened, which calls are still open. Does not conclude anything
 * from it (align.ts) and holds no ids (turn-tree.ts).
 */
import { type Turn, TurnRelation } from "@mortise/contracts";
import { type Call, type Conclusion, callOfTurn, type KnownCall, knownCall } from "./call.js";
import {
  type DigestedMessage,
  digestTools,
  equalBytes,
  keyOf,
  openingSystems,
  type RequestDigests,
} from "./digests.js";

export class Thread {
  readonly id: string;
  /** The agent's key; undefined for a main thread, or where the harness does not name agents. */
  readonly agent: string | undefined;
  /** Oldest first; calls that failed included. */
  readonly calls: KnownCall[] = [];

  constructor(id: string, agent: string | undefined) {
    this.id = id;
    this.agent = agent;
  }

  /** Its newest call that is a turn of its agent, or compacts the agent's history. */
  get lastOfAgent(): KnownCall | undefined {
    return this.calls.findLast(({ purpose }) => purpose === "agent" || purpose === "compaction");
  }

  /** The agent's own calls, without those that failed before anything was sampled. */
  get agentCalls(): readonly KnownCall[] {
    return this.calls.filter(({ purpose, state }) => purpose === "agent" && state !== "failed");
  }
}

const NO_TOOLS = digestTools([]);
/** System messages of an opening that are compared; more than any harness begins with. */
const MAX_OPENING_SYSTEMS = 4;

export class CallLog {
  readonly threads = new Map<string, Thread>();
  private readonly byId = new Map<string, KnownCall>();
  private readonly byBody = new Map<string, KnownCall[]>();
  private readonly bySession = new Map<string, string>();
  private readonly followers = new Map<string, KnownCall[]>();
  private readonly openings = new Map<string, string>();
  private readonly kinds = new Map<string, string>();

  /** A call is being answered. */
  opened(id: string, call: Call, conclusion: Conclusion): void {
    this.remember(knownCall(id, call, conclusion));
    if (conclusion.relation !== TurnRelation.AUXILIARY) this.noteOpening(call.digests, conclusion.thread);
  }

  /** A call's turn is in the tree; without `opened` before it, it is known from its record. */
  captured(turn: Turn): void {
    const known = this.byId.get(turn.turn);
    if (known) {
      known.state = "captured";
      known.turn = turn;
      return;
    }
    this.remember(callOfTurn(turn));
    if (turn.relation !== TurnRelation.AUXILIARY && turn.keptMessages === 0) this.noteRecordedOpening(turn);
  }

  /** A call ended without tokens. */
  failed(id: string, isOverflow = false): void {
    const known = this.byId.get(id);
    if (!known || known.state === "captured") return;
    known.state = "failed";
    known.isOverflow = isOverflow;
  }

  /** Calls with the same body and caller, oldest first. */
  sameBody({ body }: RequestDigests): readonly KnownCall[] {
    return this.byBody.get(keyOf(body)) ?? [];
  }

  /** Calls whose history repeats the turn's reply last, in the order they came. */
  followersOf(turn: string): readonly KnownCall[] {
    return this.followers.get(turn) ?? [];
  }

  /** Calls remembered, whatever became of them. */
  get size(): number {
    return this.byId.size;
  }

  call(id: string): KnownCall | undefined {
    return this.byId.get(id);
  }

  /** The first thread that called in the harness's session. */
  threadOfSession(session: string): Thread | undefined {
    return this.threads.get(this.bySession.get(session) ?? "");
  }

  /** The thread of a conversation that opened with the same system text and first message. */
  threadOpenedAs({ messages }: RequestDigests): Thread | undefined {
    return this.threads.get(this.openings.get(openingKey(messages, 1)) ?? "");
  }

  /** The thread of a conversation that opened with the same system text and tools. */
  threadOfKind({ messages, tools }: RequestDigests): Thread | undefined {
    return this.threads.get(this.kinds.get(openingKey(messages, 0, tools)) ?? "");
  }

  /** Whether any agent of the session was offered tools. */
  get hasToolUsers(): boolean {
    for (const thread of this.threads.values())
      if (thread.calls.some(({ purpose, tools }) => purpose === "agent" && !equalBytes(tools, NO_TOOLS)))
        return true;
    return false;
  }

  private remember(call: KnownCall): void {
    this.byId.set(call.id, call);
    append(this.byBody, call.body, call);
    if (call.follows !== undefined) append(this.followers, call.follows, call);
    const thread = this.threads.get(call.thread) ?? new Thread(call.thread, call.agent);
    this.threads.set(call.thread, thread);
    thread.calls.push(call);
    // Sub-agents may share their parent's session: then the name of the agent tells them.
    const { session, agent } = call;
    if (session !== undefined && (agent === undefined || agent === session))
      setOnce(this.bySession, session, call.thread);
  }

  private noteOpening({ messages, tools }: RequestDigests, thread: string): void {
    setOnce(this.openings, openingKey(messages, 1), thread);
    setOnce(this.kinds, openingKey(messages, 0, tools), thread);
  }

  private noteRecordedOpening({ messageDigests, openingSystems: systems, toolsDigest, thread }: Turn): void {
    setOnce(this.openings, keyOfOpening(messageDigests, systems, 1), thread);
    setOnce(this.kinds, keyOfOpening(messageDigests, systems, 0, toolsDigest), thread);
  }
}

function openingKey(messages: readonly DigestedMessage[], spoken: number, tools?: Uint8Array): string {
  const opening = messages.slice(0, MAX_OPENING_SYSTEMS + 1).map((message) => message.digest);
  return keyOfOpening(opening, openingSystems(messages), spoken, tools);
}

/** Key of the leading system messages, as many `spoken` ones behind them, and tools where they count. */
function keyOfOpening(
  messages: readonly Uint8Array[],
  systems: number,
  spoken: number,
  tools?: Uint8Array,
): string {
  const leading = Math.min(systems, MAX_OPENING_SYSTEMS);
  const opening = messages.slice(0, leading + spoken).map(keyOf);
  return [leading, ...opening, ...(tools ? [keyOf(tools)] : [])].join(" ");
}

function setOnce(map: Map<string, string>, key: string, value: string): void {
  if (!map.has(key)) map.set(key, value);
}

function append<V>(map: Map<string, V[]>, key: string, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
