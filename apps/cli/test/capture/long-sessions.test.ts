/**
 * Sessions in which several things happen, one after another or at once: agents that fail and are tried again
 * beside each other, histories compacted more than once, sessions that are resumed under other settings.
 */
import { expect, test } from "vitest";
import {
  type Ask,
  calls,
  chat,
  claude,
  codex,
  opencode,
  ScriptedRecording,
  TOO_LONG,
} from "./scripted-recording.js";

const { ask, user, system, text, used, results } = claude;
const PROMPT = [user("context", "Fix the failing test."), system("reminders")];
const SUMMARISE = "Summarise what was done so far.";
const FALLBACK_BETA = "claude-code-20250219,fallback-credit-2026-06-01";
const OVERLOADED = { err: { status: 529 } };

function agentCall(id: string, prompt: string, name = "Agent") {
  return { id, name, raw: JSON.stringify({ prompt, description: "d" }) };
}

/** The same request with other fields of the body, or other headers. */
function varied(one: Ask, body: Record<string, unknown>, headers: Record<string, unknown> = {}): Ask {
  return { ...one, body: { ...one.body, ...body }, headers: { ...one.headers, ...headers } };
}

test("agents at once: one fails and is tried again, one starts a third, results come in any order", () => {
  const recording = new ScriptedRecording();
  const [parser, lexer] = [user("context", "Look into the parser."), user("context", "Look into the lexer.")];
  recording.call(
    ask(PROMPT),
    calls(agentCall("a", "Look into the parser."), agentCall("b", "Look into the lexer.")),
  );
  const first = recording.open(ask([parser], { agent: "A" }), calls({ id: "a1" }));
  recording.call(ask([lexer], { agent: "B" }), OVERLOADED);
  recording.end(first);
  const again = varied(
    ask([lexer], { agent: "B" }),
    { max_tokens: 9000 },
    { "x-stainless-retry-count": "1" },
  );
  recording.call(again, calls(agentCall("c", "List the grammar files.")));
  recording.call(ask([user("context", "List the grammar files.")], { agent: "C", parent: "B" }));
  recording.call(ask([parser, used("a1"), results(["a1"]), system("note")], { agent: "A" }));
  recording.call(ask([lexer, used("c"), results(["c"])], { agent: "B" }));
  recording.call(ask([...PROMPT, used("a", "b"), results(["b", "a"])]));
  expect(recording.tree()).toEqual([
    "root",
    "root 1 @A",
    "root 1 @B",
    "retry 3 @B",
    "root 4 @C",
    "extends 2 @A",
    "extends 4 @B",
    "extends 1",
  ]);
});

test("one prompt given twice starts two agents, each below its own call; a message to the first goes on from it", () => {
  const recording = new ScriptedRecording();
  const opening = [user("context", "Look into the parser.")];
  recording.call(ask(PROMPT), calls(agentCall("a", "Look into the parser.")));
  recording.call(ask(opening, { agent: "A" }), { text: "first report" });
  const one = [...PROMPT, used("a"), results(["a"])];
  recording.call(ask(one), calls(agentCall("b", "Look into the parser.")));
  recording.call(ask(opening, { agent: "B" }), { text: "second report" });
  recording.call(ask([...one, used("b"), results(["b"])]), calls({ id: "m", name: "SendMessage" }));
  recording.call(ask([...opening, text("first report"), user("And the rest.")], { agent: "A" }));
  expect(recording.tree()).toEqual([
    "root",
    "root 1 @A",
    "extends 1",
    "root 3 @B",
    "extends 3",
    "extends 2 @A",
  ]);
});

test("a history is compacted twice; the second summary fails first", () => {
  const recording = new ScriptedRecording();
  recording.call(ask(PROMPT), calls({ id: "a" }));
  recording.call(ask([...PROMPT, used("a"), results(["a"])]), TOO_LONG);
  recording.call(ask([...PROMPT, used("a"), results(["a"], SUMMARISE)], { beta: FALLBACK_BETA }));
  const second = [user("context", "What happened: a."), system("reminders")];
  recording.call(ask(second), calls({ id: "b" }));
  recording.call(ask([...second, used("b"), results(["b"])]), calls({ id: "c" }));
  const summary = ask([...second, used("b"), results(["b"], SUMMARISE)], { beta: FALLBACK_BETA });
  recording.call(summary, OVERLOADED);
  recording.call(summary);
  const third = [user("context", "What happened: a, b."), system("reminders"), used("c"), results(["c"])];
  recording.call(ask(third), calls({ id: "d" }));
  recording.call(ask([...third, used("d"), results(["d"])]));
  expect(recording.tree()).toEqual([
    "root",
    "extends 1",
    "auxiliary 1 context-only",
    "root",
    "extends 4",
    "auxiliary 4 context-only",
    "retry 6 context-only",
    "root",
    "extends 8",
  ]);
});

test("a title beside a first turn that failed is a title, and so is its second try", () => {
  const recording = new ScriptedRecording();
  const title = ask([user("Fix the failing test.")], { tools: [] });
  const main = recording.open(ask(PROMPT), OVERLOADED);
  recording.call(title);
  recording.end(main, 529);
  recording.call(title);
  recording.call(ask(PROMPT));
  expect(recording.tree()).toEqual(["root", "auxiliary excluded", "retry 2 excluded", "retry 1"]);
});

test("what was resumed under another model name goes on; under another system text it begins a branch", () => {
  const recording = new ScriptedRecording();
  const one = [...PROMPT, text("Done."), user("And the docs.")];
  const two = [...one, text("Done too."), user("More.")];
  const tuesday = { system: [{ type: "text", text: "You are an agent. Today is Tuesday." }] };
  recording.call(ask(PROMPT), { text: "Done." });
  recording.call(varied(ask(one), { model: "other" }), { text: "Done too." });
  recording.call(varied(ask(two), tuesday), calls({ id: "a" }));
  recording.call(varied(ask([...two, used("a"), results(["a"])]), tuesday));
  expect(recording.tree()).toEqual(["root", "extends 1", "branch", "extends 3"]);
});

test("two replies in the same words: the later one is gone on from; after two at once the echo tells", () => {
  const recording = new ScriptedRecording();
  const next = [...PROMPT, text("Hm."), user("Do it.")];
  recording.call(ask(PROMPT), { text: "Hm." });
  recording.call(ask(PROMPT), { text: "Hm." });
  const [one, other] = [
    recording.open(ask(next), calls({ id: "a" })),
    recording.open(ask(next), calls({ id: "b" })),
  ];
  recording.end(other);
  recording.end(one);
  recording.call(ask([...next, used("b"), results(["b"])]));
  expect(recording.tree()).toEqual(["root", "retry 1", "extends 2", "branch 2", "extends 4"]);
});

test("a request refused as malformed in the middle goes on under the tools its last try offered", () => {
  const recording = new ScriptedRecording();
  const refused = { err: { status: 400, json: { error: { message: "bad thing" } } } };
  const more = { tools: ["Bash", "Agent", "Cron"] };
  const changed = [PROMPT[0], system("longer reminders"), used("a"), results(["a"])];
  recording.call(ask(PROMPT), calls({ id: "a" }));
  recording.call(ask([...PROMPT, used("a"), results(["a"])]), refused);
  recording.call(ask(changed, more), refused);
  recording.call(ask(changed, more), calls({ id: "b" }));
  recording.call(ask([...changed, used("b"), results(["b"])], more));
  expect(recording.tree()).toEqual(["root", "extends 1", "retry 2", "retry 2", "extends 4"]);
});

test("counting tokens and asking for models are no model calls", () => {
  const recording = new ScriptedRecording();
  recording.call({ ...ask(PROMPT), url: "/v1/messages/count_tokens?beta=true" });
  recording.call(ask(PROMPT), calls({ id: "a" }));
  recording.call({ ...codex.ask([]), url: "/v1/responses/compact" });
  recording.call(ask([...PROMPT, used("a"), results(["a"])]));
  expect(recording.tree()).toEqual(["root", "extends 2"]);
});

const OC = [chat.system("You are OpenCode."), chat.user('"Fix the failing test."')];

test("OpenCode: a retry that calls a tool too stands behind the call of the try that broke", () => {
  const recording = new ScriptedRecording();
  recording.cut(opencode.ask(OC), { ...calls({ id: "a" }), cut: "end" });
  recording.call(opencode.ask(OC), calls({ id: "b" }));
  const both = [...OC, chat.used("a"), chat.result("a", "aborted"), chat.used("b"), chat.result("b")];
  recording.call(opencode.ask(both), calls({ id: "c" }));
  recording.call(opencode.ask([...both, chat.used("c"), chat.result("c")]));
  expect(recording.tree()).toEqual(["root", "retry 1", "extends 1", "extends 3"]);
});

test("OpenCode: results cleared later branch from the last turn before them", () => {
  const recording = new ScriptedRecording();
  const one = [...OC, chat.used("a"), chat.result("a")];
  recording.call(opencode.ask(OC), calls({ id: "a" }));
  recording.call(opencode.ask(one), { text: "Done." });
  recording.call(opencode.ask([...one, chat.text("Done."), chat.user("More.")]), calls({ id: "b" }));
  const cleared = [
    ...OC,
    chat.used("a"),
    chat.result("a", "(cleared)"),
    chat.text("Done."),
    chat.user("More."),
  ];
  recording.call(opencode.ask([...cleared, chat.used("b"), chat.result("b")]));
  expect(recording.tree()).toEqual(["root", "extends 1", "extends 2", "branch 1"]);
});

const CONTEXT = [codex.message("developer", "You are Codex."), codex.message("user", "environment")];

test("Codex: a sub-agent's compaction breaks and is tried again while the main agent goes on", () => {
  const recording = new ScriptedRecording();
  const opening = [...CONTEXT, codex.message("user", "Fix the failing test.")];
  const sub = { thread: "t1", parent: "t0" };
  const forked = [...opening, codex.message("user", "Look into the parser.")];
  const spawn = JSON.stringify({ message: "Look into the parser." });
  recording.call(codex.ask(opening), calls({ id: "a", name: "spawn_agent", raw: spawn }));
  recording.call(codex.ask(forked, sub), calls({ id: "s" }));
  recording.call(codex.ask([...opening, codex.used("a"), codex.output("a")]), calls({ id: "b" }));
  const summary = codex.ask(
    [...forked, codex.used("s"), codex.output("s"), codex.message("user", SUMMARISE)],
    { ...sub, kind: "compaction", tools: [] },
  );
  recording.cut(summary, { text: "half a summ", cut: "text" });
  recording.call(summary);
  const fresh = codex.ask([...CONTEXT, codex.message("user", "Summary: s")], { ...sub, window: 1 });
  recording.call(fresh, { err: { status: 429 } });
  recording.call(fresh);
  expect(recording.tree()).toEqual([
    "root",
    "root 1 @t1",
    "extends 1",
    "auxiliary @t1 context-only",
    "retry 4 @t1 context-only",
    "root @t1",
    "retry 6 @t1",
  ]);
});
