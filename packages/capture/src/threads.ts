/**
 * Owns whose call a call is: the thread it belongs to, and how a new thread came to be. Where a harness names
 * its agents the name decides; elsewhere the history does. Relations within a thread are align.ts's.
 *
 * H1  A name decides: of the agent, or of a session that only one thread has.
 * H2  Without one: the turn that is extended, the same body, the same first message under the same system text.
 * H3  A conversation that fits none is a sub-agent's when a tool was called with its prompt, or while an agent
 *     waits for its tools; it is an agent's own new history when that was just compacted, or when it has the
 *     agent's system text and tools; otherwise nobody's that is known.
 */
import type { Call, CallPurpose, KnownCall } from "./call.js";
import type { CallLog, Thread } from "./call-log.js";
import { promptedBy, spawningCall } from "./spawn.js";
import type { Extension } from "./turn-tree.js";

/** The main agent's thread. */
export const MAIN_THREAD = "main";

/** How a thread's role can be told. */
export type ThreadOrigin = "main" | "sub-agent" | "unknown";

export interface PlacedThread {
  readonly id: string;
  readonly origin: ThreadOrigin;
  /** Call whose reply started it, where that is how it was recognised. */
  readonly spawnedBy: KnownCall | undefined;
}

export interface ThreadFacts {
  readonly call: Call;
  readonly log: CallLog;
}

/** H1. Undefined also when the named thread has no call yet. */
export function namedThread({ call: { signals }, log }: ThreadFacts): Thread | undefined {
  const { agent, session } = signals;
  if (agent !== undefined) return log.threads.get(agent);
  const ofSession = session === undefined ? undefined : log.threadOfSession(session);
  if (ofSession) return ofSession;
  const isTheOnlyMain = signals.namesAgents && session === undefined;
  return isTheOnlyMain ? log.threads.get(MAIN_THREAD) : undefined;
}

/** H2 */
export function threadOfHistory(
  { call, log }: ThreadFacts,
  extension: Extension | undefined,
  firstTry: KnownCall | undefined,
): Thread | undefined {
  const { agent, session } = call.signals;
  if (agent !== undefined) return undefined;
  const id = extension?.turn.thread ?? firstTry?.thread;
  if (id !== undefined) return log.threads.get(id);
  // A session of another name that repeats nothing but the task is another attempt at it.
  return session === undefined ? log.threadOpenedAs(call.digests) : undefined;
}

/** H3: the thread of a call that belongs to none there is. */
export function newThread(facts: ThreadFacts, purpose: CallPurpose): PlacedThread {
  const { call, log } = facts;
  const { agent, session, namesAgents } = call.signals;
  if (agent !== undefined) return { id: agent, origin: "sub-agent", spawnedBy: undefined };
  if (!log.threads.has(MAIN_THREAD)) return main(MAIN_THREAD);
  if (namesAgents) return main(session ?? MAIN_THREAD);
  if (purpose !== "agent") return main(MAIN_THREAD);
  const unnamed = session ?? `agent-${log.threads.size}`;
  const prompted = promptedBy(call, agentCalls(log), log);
  if (prompted) return { id: unnamed, origin: "sub-agent", spawnedBy: prompted };
  const sibling = log.threadOfKind(call.digests) ?? compactedThread(log);
  if (sibling) return main(session === undefined ? sibling.id : unnamed);
  const waiting = waitingCall(log);
  if (waiting) return { id: unnamed, origin: "sub-agent", spawnedBy: waiting };
  return { id: unnamed, origin: "unknown", spawnedBy: undefined };
}

function main(id: string): PlacedThread {
  return { id, origin: "main", spawnedBy: undefined };
}

/** The call whose reply started an agent that the harness names. */
export function spawnerOfNamed({ call, log }: ThreadFacts): KnownCall | undefined {
  const { agent, parentAgent } = call.signals;
  const isParent = (thread: Thread) =>
    parentAgent !== undefined && log.threads.has(parentAgent)
      ? thread.id === parentAgent
      : thread.agent === undefined;
  return spawningCall(call, log, (thread) => thread.id !== agent && isParent(thread));
}

function agentCalls(log: CallLog): KnownCall[] {
  return [...log.threads.values()].flatMap((thread) => thread.agentCalls);
}

function compactedThread(log: CallLog): Thread | undefined {
  return [...log.threads.values()].find((thread) => thread.lastOfAgent?.purpose === "compaction");
}

/** An agent's call whose tools may be running: it is being answered, or nothing has followed its calls yet. */
function waitingCall(log: CallLog): KnownCall | undefined {
  return [...log.threads.values()]
    .map((thread) => thread.agentCalls.at(-1))
    .find((last) => last && (last.state === "open" || mayRunTools(last, log)));
}

function mayRunTools({ turn }: KnownCall, log: CallLog): boolean {
  return turn !== undefined && turn.toolCalls.length > 0 && log.followersOf(turn.turn).length === 0;
}
