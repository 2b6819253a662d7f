/** Cases of OpenCode, Codex, pi and harnesses that say nothing about themselves, beside the recorded ones. */
import { expect, test } from "vitest";
import { calls, chat, codex, opencode, ScriptedRecording, TOO_LONG } from "./scripted-recording.js";

const OC = [chat.system("You are OpenCode."), chat.user('"Fix the failing test."')];

test("OpenCode's sub-agents have sessions of their own; titles and compactions stand on them", () => {
  const recording = new ScriptedRecording();
  const task = (prompt: string) => ({ name: "task", raw: JSON.stringify({ prompt, description: "d" }) });
  const sub = { session: "ses_sub", parent: "ses_main" };
  const inner = { session: "ses_inner", parent: "ses_sub" };
  const opening = [chat.system("You search."), chat.user("Find the parser.")];
  recording.call(opencode.title("Fix the failing test."));
  recording.call(opencode.ask(OC), calls({ id: "a", ...task("Find the parser.") }));
  recording.call(opencode.title("Find the parser.", sub));
  recording.call(opencode.ask(opening, sub), calls({ id: "s", ...task("List the files.") }));
  recording.call(opencode.ask([chat.system("You search."), chat.user("List the files.")], inner));
  recording.call(opencode.ask([...opening, chat.used("s"), chat.result("s")], sub), TOO_LONG);
  recording.call(opencode.ask([chat.system("Summaries."), chat.user("All of it.")], { ...sub, tools: [] }));
  recording.call(
    opencode.ask(
      [chat.system("You search."), chat.user("So far?"), chat.text("ok"), chat.user("Go on.")],
      sub,
    ),
  );
  recording.call(opencode.ask([...OC, chat.used("a"), chat.result("a")]));
  expect(recording.tree()).toEqual([
    "auxiliary excluded",
    "root",
    "auxiliary @ses_sub excluded",
    "root 2 @ses_sub",
    "root 4 @ses_inner",
    "extends 4 @ses_sub",
    "auxiliary @ses_sub context-only",
    "root @ses_sub",
    "extends 2",
  ]);
});

test("a title may come after the agent's first call, with the agent's model, and may be tried again", () => {
  const recording = new ScriptedRecording();
  const title = opencode.ask([chat.system("Titles."), chat.user('Name this: "Fix."')], { tools: [] });
  const main = recording.open(opencode.ask(OC), calls({ id: "a" }));
  recording.call(title, { err: { status: 500 } });
  recording.end(main);
  recording.call(title);
  recording.call(opencode.ask([...OC, chat.used("a"), chat.result("a")]));
  expect(recording.tree()).toEqual(["root", "auxiliary excluded", "retry 2 excluded", "extends 1"]);
});

test("a second run of OpenCode in one trial is a main thread of its own", () => {
  const recording = new ScriptedRecording();
  recording.call(opencode.ask(OC));
  recording.call(opencode.ask(OC, { session: "ses_other" }));
  recording.call(opencode.title("Fix the failing test.", { session: "ses_third" }));
  recording.call(opencode.ask(OC, { session: "ses_third" }));
  expect(recording.tree()).toEqual([
    "root",
    "root @ses_other",
    "auxiliary @ses_third excluded",
    "root @ses_third",
  ]);
});

test("two compactions that end in the same summary start two histories", () => {
  const recording = new ScriptedRecording();
  const summary = (history: string) =>
    opencode.ask([chat.system("Summaries."), chat.user(history)], { tools: [] });
  const restart = opencode.ask([OC[0], chat.user("So far?"), chat.text("ok"), chat.user("Go on.")]);
  recording.call(opencode.ask(OC), calls({ id: "a" }));
  recording.call(summary("a"));
  recording.call(restart, calls({ id: "b" }));
  recording.call(summary("b"));
  recording.call(restart, { err: { status: 503 } });
  recording.call(restart, calls({ id: "c" }));
  recording.call(summary("b"));
  expect(recording.tree()).toEqual([
    "root",
    "auxiliary context-only",
    "root",
    "auxiliary context-only",
    "root",
    "retry 5",
    "auxiliary context-only",
  ]);
});

const CONTEXT = [codex.message("developer", "You are Codex."), codex.message("user", "environment")];
const OPENING = [...CONTEXT, codex.message("user", "Fix the failing test.")];

test("Codex compacts into a new window, the main agent's and a sub-agent's", () => {
  const recording = new ScriptedRecording();
  const spawn = JSON.stringify({ message: "Look into the parser." });
  const sub = { thread: "t1", parent: "t0" };
  const subOpening = [...CONTEXT, codex.message("user", "Look into the parser.")];
  recording.call(codex.ask(OPENING), calls({ id: "a", name: "spawn_agent", raw: spawn }));
  recording.call(codex.ask(subOpening, sub), calls({ id: "s" }));
  const started = [...OPENING, codex.used("a"), codex.output("a")];
  recording.call(codex.ask(started), calls({ id: "b" }));
  const history = [...subOpening, codex.used("s"), codex.output("s")];
  const summarise = codex.message("user", "Summarise.");
  recording.call(codex.ask([...history, summarise], { ...sub, kind: "compaction", tools: [] }), {
    err: { status: 500 },
  });
  recording.call(codex.ask([...history, summarise], { ...sub, kind: "compaction", tools: [] }));
  recording.call(codex.ask([...CONTEXT, codex.message("user", "Summary: s")], { ...sub, window: 1 }));
  recording.call(
    codex.ask([...started, codex.used("b"), codex.output("b"), summarise], { kind: "compaction", tools: [] }),
  );
  recording.call(
    codex.ask([...CONTEXT, codex.message("user", "Summary: b")], { window: 1 }),
    calls({ id: "c" }),
  );
  recording.call(
    codex.ask([...CONTEXT, codex.message("user", "Summary: b"), codex.used("c"), codex.output("c")], {
      window: 1,
    }),
  );
  expect(recording.tree()).toEqual([
    "root",
    "root 1 @t1",
    "extends 1",
    "auxiliary @t1 context-only",
    "retry 4 @t1 context-only",
    "root @t1",
    "auxiliary context-only",
    "root",
    "extends 8",
  ]);
});

test("a sub-agent of Codex that was given its parent's history has a root of its own", () => {
  const recording = new ScriptedRecording();
  const spawn = JSON.stringify({ message: "Look into the parser.", fork_context: true });
  recording.call(codex.ask(OPENING), calls({ id: "a", name: "spawn_agent", raw: spawn }));
  const forked = [
    ...OPENING,
    codex.used("a"),
    codex.output("a"),
    codex.message("user", "Look into the parser."),
  ];
  recording.call(codex.ask(forked, { thread: "t1", parent: "t0" }));
  expect(recording.tree()).toEqual(["root", "root 1 @t1"]);
});

test("Codex's helpers of another kind are not trained", () => {
  const recording = new ScriptedRecording();
  recording.call(codex.ask(OPENING));
  recording.call(codex.ask([codex.message("user", "Is this allowed?")], { kind: "guardian" }));
  expect(recording.tree()).toEqual(["root", "auxiliary excluded"]);
});

const PI_TOOLS = { tools: ["read", "bash", "edit", "write"], headers: { "user-agent": "OpenAI/JS 6.26.0" } };
const PI = [chat.system("You are pi."), chat.user("Fix the failing test.")];

test("pi compacts without tools and starts from the summary", () => {
  const recording = new ScriptedRecording();
  recording.call(chat.ask(PI, PI_TOOLS), calls({ id: "a" }));
  recording.call(chat.ask([chat.system("Summaries."), chat.user("all of it")], { ...PI_TOOLS, tools: [] }));
  recording.call(chat.ask([chat.system("You are pi."), chat.user("Summary: nothing.")], PI_TOOLS));
  expect(recording.tree()).toEqual(["root", "auxiliary context-only", "root"]);
});

test("pi sends back the first part of an id with a bar", () => {
  const recording = new ScriptedRecording();
  const ask = (input: unknown[]) => ({
    url: "/v1/responses",
    headers: { "user-agent": "OpenAI/JS 6.26.0", session_id: "p1" },
    body: { model: "m", input, tools: PI_TOOLS.tools.map((name) => ({ type: "function", name })) },
  });
  recording.call(ask(OPENING), calls({ id: "functions.b:0|x/y" }));
  recording.call(ask([...OPENING, codex.used("functions.b:0"), codex.output("functions.b:0")]));
  expect(recording.tree()).toEqual(["root", "extends 1"]);
});

const OPENING_CHAT = [chat.system("You are an agent."), chat.user("Fix the failing test.")];

test("a call that was given no id comes back under the harness's own", () => {
  const recording = new ScriptedRecording();
  recording.call(opencode.ask(OC), calls({ id: "a" }, { id: "" }));
  recording.call(
    opencode.ask([...OC, chat.used("a", "minted"), chat.result("a"), chat.result("minted")]),
    calls({ id: "" }),
  );
  recording.call(
    opencode.ask([
      ...[...OC, chat.used("a", "minted"), chat.result("a"), chat.result("minted")],
      ...[chat.used("another"), chat.result("another")],
    ]),
  );
  recording.call(opencode.ask([...OC, chat.used("b", "minted"), chat.result("b"), chat.result("minted")]));
  expect(recording.tree()).toEqual(["root", "extends 1", "extends 2", "branch"]);
});

test("a malformed reply that a harness leaves out is a rejected leaf beside the next one", () => {
  const recording = new ScriptedRecording();
  const after = [...OPENING_CHAT, chat.used("a"), chat.result("a")];
  recording.call(chat.ask(OPENING_CHAT), calls({ id: "a" }));
  recording.call(chat.ask(after), { text: "no call" });
  recording.call(chat.ask([...after, chat.user("Call a tool.")]), calls({ id: "b" }));
  recording.call(chat.ask([...after, chat.user("Call a tool."), chat.used("b"), chat.result("b")]));
  expect(recording.tree()).toEqual(["root", "extends 1", "branch 1", "extends 3"]);
});

test("the same prompt after a whole reply is a re-ask", () => {
  const recording = new ScriptedRecording();
  recording.call(chat.ask(OPENING_CHAT), { text: "cut" });
  recording.call(chat.ask(OPENING_CHAT), { text: "whole" });
  recording.call(chat.ask(OPENING_CHAT), { text: "again" });
  expect(recording.tree()).toEqual(["root", "retry 1", "retry 1"]);
});

test("observations that are rewritten later branch from the last turn whose history stands", () => {
  const recording = new ScriptedRecording();
  const one = [...OPENING_CHAT, chat.used("a"), chat.result("a")];
  const two = [...one, chat.used("b"), chat.result("b")];
  recording.call(chat.ask(OPENING_CHAT), calls({ id: "a" }));
  recording.call(chat.ask(one), calls({ id: "b" }));
  recording.call(chat.ask(two), calls({ id: "c" }));
  const rewritten = [
    ...OPENING_CHAT,
    chat.used("a"),
    chat.result("a", "(old)"),
    chat.used("b"),
    chat.result("b"),
  ];
  recording.call(chat.ask([...rewritten, chat.used("c"), chat.result("c")]));
  expect(recording.tree()).toEqual(["root", "extends 1", "extends 2", "branch 1"]);
});

test("a harness without tools is trained, also when it starts over", () => {
  const recording = new ScriptedRecording();
  const none = { tools: [] };
  recording.call(chat.ask(OPENING_CHAT, none), { text: "```ls```" });
  recording.call(chat.ask([...OPENING_CHAT, chat.text("```ls```"), chat.user("files")], none));
  recording.call(chat.ask([chat.system("You are an agent."), chat.user("Handed over: all.")], none));
  expect(recording.tree()).toEqual(["root", "extends 1", "branch"]);
});

test("without names a sub-agent is told by its prompt, or by tools that run; a summary by the history it repeats", () => {
  const recording = new ScriptedRecording();
  const raw = JSON.stringify({ task: "Look into the parser." });
  recording.call(chat.ask(OPENING_CHAT), calls({ id: "a", name: "delegate", raw }));
  const sub = [chat.system("You are a helper."), chat.user("Look into the parser.")];
  recording.call(chat.ask(sub, { tools: ["grep"] }), calls({ id: "s" }));
  recording.call(chat.ask([...sub, chat.used("s"), chat.result("s")], { tools: ["grep"] }));
  recording.call(chat.ask([chat.system("Another."), chat.user("Look elsewhere.")], { tools: ["find"] }));
  const after = [...OPENING_CHAT, chat.used("a"), chat.result("a")];
  recording.call(chat.ask(after), { text: "Done." });
  recording.call(chat.ask([...after, chat.user("Summarise.")], { tools: [] }));
  recording.call(chat.ask([chat.system("You are an agent."), chat.user("Summary: done.")]));
  expect(recording.tree()).toEqual([
    "root",
    "root 1 @agent-1",
    "extends 2 @agent-1",
    "root 1 @agent-2",
    "extends 1",
    "auxiliary context-only",
    "root",
  ]);
});

test("a conversation that nothing explains is quarantined", () => {
  const recording = new ScriptedRecording();
  recording.call(chat.ask(OPENING_CHAT), { text: "Done." });
  recording.call(
    chat.ask([chat.system("Judge."), chat.user("Is it done?")], { tools: ["verdict"] }),
    calls({ id: "v" }),
  );
  recording.call(
    chat.ask([chat.system("Judge."), chat.user("Is it done?"), chat.used("v"), chat.result("v")], {
      tools: ["verdict"],
    }),
  );
  expect(recording.tree()).toEqual(["root", "root @agent-1 excluded", "extends 2 @agent-1 excluded"]);
  expect(recording.reasons()[1]).toContain("quarantined");
});

test("conversations named by a header are kept apart, and summaries of OpenHands are context", () => {
  const recording = new ScriptedRecording();
  const named = (session: string) => ({ headers: { "x-litellm-session-id": session } });
  recording.call(chat.ask(OPENING_CHAT, named("c1")), calls({ id: "a" }));
  recording.call(chat.ask([chat.user("Summarise this: …")], { tools: [], ...named("c1") }));
  recording.call(chat.ask([OPENING_CHAT[0], chat.user("Summary: …")], named("c1")));
  recording.call(chat.ask(OPENING_CHAT, named("c2")));
  expect(recording.tree()).toEqual(["root", "auxiliary context-only", "root", "root @c2"]);
});
