/**
 * Any JSON body is read into a request or refused by the name of a field; what is read is digested, and any
 * sampled ids are written as a reply in the protocol's form. Nothing else is thrown, and no part of a body is
 * looked at more often than in proportion to its size.
 */
import { digestRequest, normaliseConversation, type ReplyEnd, type ReplyPart } from "@mortise/capture";
import { FinishReason, MortiseError } from "@mortise/contracts";
import {
  chatDialect,
  type Dialect,
  type ModelRequest,
  messagesDialect,
  responsesDialect,
} from "@mortise/dialects";
import { expect, test } from "vitest";
import { Bodies, dialectFor, type FuzzBody } from "./bodies.js";
import { withBrake } from "./brake.js";
import { countReads, sizeOf } from "./counted.js";
import { failure, isServed } from "./outcome.js";
import { randomReply } from "./replies.js";
import { BODIES, SEED } from "./share.js";
import { problemOfStream, problemOfWhole } from "./wire.js";

const DIALECTS = [chatDialect, messagesDialect, responsesDialect];

/** Looks at a property for each value of a body, and for each request. Reading, checking and digesting included. */
const READS_PER_VALUE = 30;
const READS_PER_BODY = 300;

const END: ReplyEnd = {
  finish: FinishReason.STOP,
  promptTokens: 7,
  cachedTokens: 3,
  completionTokens: 5,
  reasoningTokens: 1,
};

test(`${BODIES} bodies are read or refused by field`, { timeout: 3_600_000 }, () => {
  const bodies = new Bodies(SEED);
  let served = 0;
  for (let n = 0; n < BODIES; n++) {
    const body = bodies.body(n);
    withBrake(() => {
      if (isServed(body, () => checkBody(body))) served++;
    });
  }
  // Were nearly all of them refused, or none, the suite would test little.
  expect(served).toBeGreaterThan(BODIES * 0.2);
  expect(served).toBeLessThan(BODIES * 0.9);
});

function checkBody(body: FuzzBody): void {
  const dialect = dialectFor(body, DIALECTS);
  const value = parsed(body.text);
  if (value === undefined) return;
  const request = readCounted(dialect, value, body);
  checkRequest(request, body);
  checkReply(dialect, request, body);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readCounted(dialect: Dialect, value: unknown, body: FuzzBody): ModelRequest {
  const counted = countReads(value);
  try {
    const { conversation, toolChoice } = dialect.read(counted.view);
    digestRequest(conversation, toolChoice);
  } catch (error) {
    if (!(error instanceof MortiseError)) throw error;
  }
  const limit = READS_PER_BODY + READS_PER_VALUE * sizeOf(value);
  if (counted.reads > limit) throw failure(body, `${counted.reads} reads, more than ${limit}`);
  return dialect.read(value);
}

function checkRequest({ conversation, toolChoice }: ModelRequest, body: FuzzBody): void {
  if (conversation.messages.length === 0) throw failure(body, "a conversation without messages");
  const again = normaliseConversation(conversation);
  const [once, twice] = [conversation, again].map((one) => digestRequest(one, toolChoice));
  if (Buffer.compare(once!.body, twice!.body) !== 0) throw failure(body, "normalising twice changes it");
}

function checkReply(dialect: Dialect, request: ModelRequest, body: FuzzBody): void {
  const head = { turn: "t-t0", model: request.model ?? "m", createdMs: 1_700_000_000_000 };
  const parts = randomReply(request, body.random);
  const whole = dialect.writer(head, request).whole(parts, END);
  const stream = streamed(dialect, request, parts, body);
  const problem = problemOfWhole(dialect.name, whole) ?? problemOfStream(dialect.name, stream);
  if (problem !== undefined) throw failure(body, `${problem}\n${whole}\n${stream}`);
}

/** The reply in pieces of any size. */
function streamed(
  dialect: Dialect,
  request: ModelRequest,
  parts: readonly ReplyPart[],
  { random }: FuzzBody,
) {
  const writer = dialect.writer({ turn: "t-t0", model: "m", createdMs: 0 }, request);
  let text = writer.opening(7);
  for (let at = 0; at < parts.length; ) {
    const end = at + 1 + random.int(3);
    text += writer.parts(parts.slice(at, end));
    if (random.chance(0.1)) text += writer.keepAlive();
    at = end;
  }
  return text + writer.ending(END);
}
