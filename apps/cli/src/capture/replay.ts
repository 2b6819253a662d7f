/**
 * Owns replaying a recording through the aligner, without engine or bus: requests are read and aligned as the
 * proxy does it, replies are what the recording says was sampled. Ids of tokens are invented, one for each
 * message, text and call, as alignment never looks into them.
 *
 * A reply joins the tree when its connection ended, or when a request goes on from it, as in the proxy.
 */
import { create } from "@bufbuild/protobuf";
import {
  type Alignment,
  align,
  alignmentFields,
  argumentTexts,
  type Call,
  callerOf,
  digestRequest,
  digestText,
  equalBytes,
  MAIN_THREAD,
  packIds,
  readSignals,
  TurnTree,
} from "@mortise/capture";
import {
  Delivery,
  FinishReason,
  MortiseError,
  type Turn,
  TurnRelation,
  TurnRole,
  TurnSchema,
} from "@mortise/contracts";
import { chatDialect, type ModelRequest, messagesDialect, responsesDialect } from "@mortise/dialects";
import { isOverflow, type RecordedReply, recordedReply } from "./recorded-reply.js";
import { isRecord, type Json, type RecordedEvent, readRecording, unreadable } from "./recording.js";

type Id = RecordedEvent["id"];

/** Where one recorded call belongs. */
export interface ReplayedCall {
  readonly id: Id;
  readonly alignment: Pick<Alignment, "thread" | "relation" | "role" | "roleReason" | "flags">;
  /** The turn extended, the first try, or the call that started a sub-agent. */
  readonly parent: Id | undefined;
}

interface OpenCall {
  readonly call: Call;
  readonly request: ModelRequest;
  readonly alignment: Alignment;
  step: Json | undefined;
}

/** Routes of model calls, whatever base path is before them. */
const READERS = [
  { path: "/messages", read: messagesDialect.read },
  { path: "/chat/completions", read: chatDialect.read },
  { path: "/responses", read: responsesDialect.read },
] as const;
type Reader = (typeof READERS)[number];

/** @throws MortiseError MORTISE_OPERATOR_RECORDING naming file and line */
export function replay(file: string): ReplayedCall[] {
  return replayEvents(readRecording(file), file);
}

/** @param file names the recording in errors */
export function replayEvents(events: readonly RecordedEvent[], file: string): ReplayedCall[] {
  const replayed = new Replay();
  for (const event of events) {
    try {
      replayed.event(event);
    } catch (cause) {
      if (!(cause instanceof MortiseError)) throw cause;
      throw unreadable(file, event.line, cause.message.replace(/\.$/, ""), cause);
    }
  }
  return replayed.calls;
}

class Replay {
  readonly calls: ReplayedCall[] = [];
  private readonly tree = new TurnTree();
  private readonly open = new Map<string, OpenCall>();
  /** Recorded id of each call, by the name it has in the tree. */
  private readonly ids = new Map<string, Id>();
  /** Name of the newest call with a recorded id: a recording of several runs may count from 1 again. */
  private readonly names = new Map<Id, string>();
  private readonly delivery = new Map<string, Delivery>();
  private readonly texts = new Map<string, string>();
  private nextToken = 1;

  event({ kind, id, fields }: RecordedEvent): void {
    const name = this.names.get(id) ?? "";
    switch (kind) {
      case "req":
        this.request(id, fields);
        break;
      case "step": {
        const open = this.open.get(name);
        if (open) open.step = isRecord(fields.step) ? fields.step : {};
        break;
      }
      case "res":
        this.answered(name, Number(fields.status));
        break;
      case "stub_error":
      case "client_closed_early":
        this.settle(name, Delivery.ABANDONED);
        break;
      case "destroyed_before_headers":
        this.fail(name);
        break;
    }
  }

  private request(id: Id, fields: Json): void {
    const reader = readerOf(fields);
    if (!reader) return;
    const request = this.read(reader, id, fields.body);
    if (!request) return;
    const call = callOf(request, fields.headers);
    this.settleExtended(call);
    const alignment = align(this.tree, call, {
      deliveryOf: (turn) => this.delivery.get(turn) ?? Delivery.UNDECIDED,
      textOf: (turn) => this.texts.get(turn.turn),
    });
    const name = this.ids.has(String(id)) ? `${id}-${this.ids.size}` : String(id);
    this.ids.set(name, id);
    this.names.set(id, name);
    this.tree.calls.opened(name, call, alignment);
    this.open.set(name, { call, request, alignment, step: undefined });
    const parent = alignment.retryOf ?? alignment.follows ?? alignment.spawnedBy;
    this.calls.push({ id, alignment, parent: parent === undefined ? undefined : this.ids.get(parent) });
  }

  /** The proxy answers a body it cannot read with 400 and captures nothing: the call has a line and no turn. */
  private read(reader: Reader, id: Id, body: unknown): ModelRequest | undefined {
    try {
      return reader.read(body);
    } catch (error) {
      if (!(error instanceof MortiseError) || error.code !== "MORTISE_PROVIDER_BAD_REQUEST") throw error;
      const alignment = {
        thread: MAIN_THREAD,
        relation: TurnRelation.AUXILIARY,
        role: TurnRole.EXCLUDED,
        roleReason: `refused: ${error.message}`,
        flags: [],
      };
      this.calls.push({ id, alignment, parent: undefined });
      return undefined;
    }
  }

  /** A request may go on from a reply whose end the recording has later: the harness had seen enough of it. */
  private settleExtended({ digests: { messages, history } }: Call): void {
    for (const [name, { call }] of this.open) {
      const { length } = call.digests.messages;
      const isExtended =
        messages[length]?.role === "assistant" &&
        equalBytes(history.before(length), call.digests.history.whole);
      if (isExtended) this.settle(name, Delivery.UNDECIDED);
    }
  }

  private answered(name: string, status: number): void {
    if (status >= 400) this.fail(name);
    else this.settle(name, Delivery.DELIVERED);
  }

  private fail(name: string): void {
    const step = this.open.get(name)?.step;
    this.open.delete(name);
    this.tree.calls.failed(name, step !== undefined && isOverflow(step));
  }

  /** The reply's connection has ended; `delivered` is what that alone would say of it. */
  private settle(name: string, delivered: Delivery): void {
    const open = this.open.get(name);
    if (!open) return;
    const reply = open.step && recordedReply(open.step);
    if (!reply) {
      this.fail(name);
      return;
    }
    this.open.delete(name);
    this.delivery.set(name, reply.isFailed ? Delivery.ABANDONED : delivered);
    this.texts.set(name, reply.text);
    this.tree.add(this.turnOf(name, open, reply));
  }

  private turnOf(name: string, { call, request, alignment }: OpenCall, reply: RecordedReply): Turn {
    const sampled: number[] = [];
    const token = () => sampled.push(this.nextToken++);
    if (reply.text !== "") token();
    const toolCalls = reply.calls.map((one) => {
      const tokenStart = sampled.length;
      return {
        id: one.id,
        name: one.name,
        tokenStart,
        tokenEnd: token(),
        texts: argumentTexts(one.arguments),
      };
    });
    token();
    const added = call.conversation.messages.slice(alignment.keptMessages);
    return create(TurnSchema, {
      ...alignmentFields(call, alignment, {
        isKept: alignment.parent !== undefined,
        audit: request.audit,
      }),
      turn: name,
      index: this.tree.turns.length,
      suffixIds: packIds(added.map(() => this.nextToken++)),
      sampledIds: packIds(sampled),
      toolCalls,
      textDigest: digestText(reply.text),
      finish: FinishReason.STOP,
    });
  }
}

function readerOf({ method, url }: Json) {
  const path = String(url).split("?", 1)[0]!.replace(/\/+$/, "");
  return method === "POST" ? READERS.find((reader) => path.endsWith(reader.path)) : undefined;
}

function callOf(request: ModelRequest, headers: unknown): Call {
  const signals = readSignals({ ...request, headers: textHeaders(headers) });
  const { conversation, toolChoice } = request;
  return { conversation, signals, digests: digestRequest(conversation, toolChoice, callerOf(signals)) };
}

/** Recordings hold headers that were JSON as JSON. */
function textHeaders(headers: unknown): Record<string, string> {
  const entries = Object.entries(isRecord(headers) ? headers : {});
  return Object.fromEntries(
    entries.map(([name, value]) => [
      name.toLowerCase(),
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );
}
