/**
 * Any bodies, one after another in one session: each is sampled, answered from what was sampled, or refused by
 * field; and what the records then say is what the engine was given. Some bodies go on from an earlier reply as
 * a harness would, some ask the same again, replies are lost, the engine fails, the replica is replaced.
 */
import { assembleTrial, TurnTree } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import { chatDialect, type Dialect, messagesDialect, responsesDialect } from "@mortise/dialects";
import { expect, test } from "vitest";
import { FORGETS_THINKING_TEMPLATE, HERMES_TEMPLATE } from "../../packages/rendering/test/templates.js";
import { Bodies, dialectFor, type FuzzBody } from "./bodies.js";
import { nextBody } from "./echoes.js";
import { FuzzPolicy, FuzzSession } from "./fuzz-session.js";
import { expectBalanced } from "./ledger.js";
import { failure } from "./outcome.js";
import { BODIES, SEED } from "./share.js";

const DIALECTS = [chatDialect, messagesDialect, responsesDialect];
const CALLS_MAX = 10;

interface Asked {
  readonly body: FuzzBody;
  readonly dialect: Dialect;
  readonly reply: string;
}

test(`${BODIES} bodies in sessions`, { timeout: 7_200_000 }, async () => {
  const bodies = new Bodies(SEED + 1);
  const policies = [HERMES_TEMPLATE, FORGETS_THINKING_TEMPLATE].map((one) => new FuzzPolicy(one));
  const counts = { turns: 0, extended: 0 };
  for (let n = 0; n < BODIES; ) {
    const first = bodies.body(n);
    const session = new FuzzSession(first.random.pick(policies), first.random);
    const asked: Asked[] = [];
    for (let calls = 1 + first.random.int(CALLS_MAX); calls > 0; calls--) {
      const body = follow(bodies.body(n++), asked);
      if (body.random.chance(0.05)) session.restart();
      const answer = await ask(session, body);
      if (answer) asked.push(answer);
    }
    const { turns } = session.journal;
    counts.turns += turns.length;
    counts.extended += turns.filter(({ turn }) => turn.parent !== "").length;
    await checkRecords(session, first);
  }
  // Were hardly any captured, or extended, the records would show little.
  expect(counts.turns).toBeGreaterThan(BODIES * 0.2);
  expect(counts.extended).toBeGreaterThan(counts.turns * 0.1);
});

/** The body itself, the one before again, or one that goes on from an earlier reply. */
function follow(body: FuzzBody, asked: readonly Asked[]): FuzzBody {
  if (asked.length === 0 || body.random.chance(0.3)) return body;
  const earlier = body.random.chance(0.7) ? asked.at(-1)! : body.random.pick(asked);
  const { dialect, headers } = earlier.body;
  if (body.random.chance(0.1)) return { ...body, dialect, headers, text: earlier.body.text };
  const text = nextBody(earlier.dialect.name, JSON.parse(earlier.body.text), earlier.reply);
  return text === undefined ? body : { ...body, dialect: earlier.dialect.name, headers, text };
}

/** The reply, when there was one and it arrived. */
async function ask({ session }: FuzzSession, body: FuzzBody): Promise<Asked | undefined> {
  const dialect = dialectFor(body, DIALECTS);
  try {
    const request = dialect.read(JSON.parse(body.text));
    const connection = await session.ask({ request, headers: body.headers, isConnected: () => true });
    const { reply } = connection;
    const end = await reply.ended.finally(() =>
      body.random.chance(0.9) ? connection.delivered() : connection.lost(),
    );
    const head = { turn: reply.turn, model: "m", createdMs: 0 };
    return { body, dialect, reply: dialect.writer(head, request).whole(reply.parts, end) };
  } catch (error) {
    if (error instanceof SyntaxError && isNoJson(body.text)) return undefined;
    if (error instanceof MortiseError && isProper(error)) return undefined;
    throw failure(body, error);
  }
}

function isNoJson(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch {
    return true;
  }
}

/** A refusal by field, or the failure the engine was told to have. */
function isProper({ code, detail, message }: MortiseError): boolean {
  if (code === "MORTISE_PROVIDER_ENGINE") return /failure after/.test(message);
  const isAboutRequest =
    code === "MORTISE_PROVIDER_BAD_REQUEST" || code === "MORTISE_PROVIDER_CONTEXT_LENGTH";
  return isAboutRequest && typeof detail.field === "string";
}

/** C1, C2, C5: contexts are those the engine was given, and every sampled token is accounted for once. */
async function checkRecords(fuzzed: FuzzSession, body: FuzzBody): Promise<void> {
  try {
    const { record } = await fuzzed.session.seal();
    const turns = fuzzed.journal.turns.map(({ turn }) => turn);
    const tree = new TurnTree();
    for (const turn of turns) {
      tree.add(turn);
      expect(tree.contextOf(turn.turn)).toEqual(fuzzed.contexts.get(turn.index));
    }
    expectBalanced(assembleTrial(turns, record));
  } catch (error) {
    throw failure(body, error);
  }
}
