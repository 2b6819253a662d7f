/** Cases of Claude Code beside the recorded ones: nested agents, compactions, dropped replies, changed tools. */
import { expect, test } from "vitest";
import { calls, claude, ScriptedRecording, type Step, TOO_LONG } from "./scripted-recording.js";

const { ask, user, system, text, used, results } = claude;
const PROMPT = [user("context", "Fix the failing test."), system("reminders")];
const SUMMARISE = "Summarise what was done so far.";
const FALLBACK_BETA = "claude-code-20250219,fallback-credit-2026-06-01";

function agentCall(id: string, prompt: string) {
  return { id, name: "Agent", raw: JSON.stringify({ prompt, description: "d" }) };
}

test("agents that run at once, and one inside another, hang below the calls that gave them their prompts", () => {
  const recording = new ScriptedRecording();
  recording.call(
    ask(PROMPT),
    calls(agentCall("a", "Look into the parser."), agentCall("b", "Look into the lexer.")),
  );
  recording.call(ask([user("context", "Look into the lexer.")], { agent: "B" }), calls({ id: "b1" }));
  recording.call(
    ask([user("context", "Look into the parser.")], { agent: "A" }),
    calls(agentCall("c", "Read the grammar file.")),
  );
  recording.call(ask([user("context", "Read the grammar file.")], { agent: "C", parent: "A" }));
  recording.call(ask([user("context", "Look into the lexer."), used("b1"), results(["b1"])], { agent: "B" }));
  recording.call(ask([...PROMPT, used("a", "b"), results(["b", "a"])]));
  expect(recording.tree()).toEqual([
    "root",
    "root 1 @B",
    "root 1 @A",
    "root 3 @C",
    "extends 2 @B",
    "extends 1",
  ]);
});

test("two agents with one prompt are no retries of each other, and share the call that started both", () => {
  const recording = new ScriptedRecording();
  recording.call(
    ask(PROMPT),
    calls(agentCall("a", "Review the change."), agentCall("b", "Review the change.")),
  );
  recording.call(ask([user("Review the change.")], { agent: "A" }));
  recording.call(ask([user("Review the change.")], { agent: "B" }));
  expect(recording.tree()).toEqual(["root", "root 1 @A", "root 1 @B"]);
});

test("a sub-agent's calls are tried again on its own thread", () => {
  const recording = new ScriptedRecording();
  recording.call(ask(PROMPT), calls(agentCall("a", "Review the change.")));
  recording.call(ask([user("Review the change.")], { agent: "A" }), { err: { status: 529 } });
  recording.call(ask([user("Review the change.")], { agent: "A" }));
  expect(recording.tree()).toEqual(["root", "root 1 @A", "retry 2 @A"]);
});

const OVERFLOW: Step = TOO_LONG;

test.each([
  ["with the beta", FALLBACK_BETA],
  ["without betas", ""],
])("a sub-agent's history is compacted on its own thread, %s", (_, beta) => {
  const recording = new ScriptedRecording();
  const opening = [user("Look into the parser.")];
  recording.call(ask(PROMPT), calls(agentCall("a", "Look into the parser.")));
  recording.call(ask(opening, { agent: "A" }), calls({ id: "a1" }));
  recording.call(ask([...opening, used("a1"), results(["a1"])], { agent: "A" }), OVERFLOW);
  recording.call(ask([...opening, used("a1"), results(["a1"], SUMMARISE)], { agent: "A", beta }));
  recording.call(ask([user("What happened: nothing.")], { agent: "A" }));
  recording.call(ask([user("What happened: nothing."), text("ok"), user("go on")], { agent: "A" }));
  expect(recording.tree()).toEqual([
    "root",
    "root 1 @A",
    "extends 2 @A",
    "auxiliary 2 @A context-only",
    "root @A",
    "extends 5 @A",
  ]);
});

test("a compaction before the window is full drops the newest reply, which comes back behind the summary", () => {
  const recording = new ScriptedRecording();
  const before = [...PROMPT, used("a"), results(["a"])];
  recording.call(ask(PROMPT), calls({ id: "a" }));
  recording.call(ask(before), calls({ id: "b" }));
  recording.call(ask([...PROMPT, used("a"), results(["a"], SUMMARISE)]));
  recording.call(ask([user("What happened: a."), system("other reminders"), used("b"), results(["b"])]));
  expect(recording.tree()).toEqual(["root", "extends 1", "auxiliary 1 context-only", "root"]);
});

test("a history refused as too long is cut back for its summary to where an earlier request ended", () => {
  const recording = new ScriptedRecording();
  const before = [...PROMPT, used("a"), results(["a"])];
  recording.call(ask(PROMPT, { beta: "" }), calls({ id: "a" }));
  recording.call(ask(before, { beta: "" }), calls({ id: "b" }));
  recording.call(ask([...before, used("b"), results(["b"])], { beta: "" }), OVERFLOW);
  recording.call(ask([...PROMPT, used("a"), results(["a"], SUMMARISE)], { beta: "" }));
  recording.call(ask([user("What happened: a.")], { beta: "" }));
  expect(recording.tree()).toEqual(["root", "extends 1", "extends 2", "auxiliary 1 context-only", "root"]);
});

test("a history of one request is compacted by more text in its message", () => {
  const recording = new ScriptedRecording();
  recording.call(ask(PROMPT), calls({ id: "a" }));
  recording.call(ask([user("context", "Fix the failing test.\n", SUMMARISE), system("reminders")]));
  recording.call(ask([user("context", "What happened: nothing."), system("reminders")]));
  expect(recording.tree()).toEqual(["root", "auxiliary context-only", "root"]);
});

test("a compaction is tried again, and one that failed leaves the history as it was", () => {
  const recording = new ScriptedRecording();
  const before = [...PROMPT, used("a"), results(["a"])];
  const compaction = ask([...PROMPT, used("a"), results(["a"], SUMMARISE)]);
  recording.call(ask(PROMPT), calls({ id: "a" }));
  recording.call(ask(before), calls({ id: "b" }));
  recording.call(compaction, { err: { status: 529 } });
  recording.call(compaction, { err: { status: 529 } });
  recording.call(ask([...before, used("b"), results(["b"])]));
  expect(recording.tree()).toEqual([
    "root",
    "extends 1",
    "auxiliary 1 context-only",
    "retry 3 context-only",
    "extends 2",
  ]);
});

test("a reply without anything to see is dropped: the next call branches from the same turn", () => {
  const recording = new ScriptedRecording();
  const before = [...PROMPT, used("a"), results(["a"])];
  const reminded = [...PROMPT, used("a"), results(["a"], "Nothing could be seen.")];
  recording.call(ask(PROMPT), calls({ id: "a" }));
  recording.call(ask(before), { thinking: "hm" });
  recording.call(ask(reminded), calls({ id: "b" }));
  recording.call(ask([...reminded, used("b"), results(["b"])]));
  expect(recording.tree()).toEqual(["root", "extends 1", "branch 1", "extends 3"]);
});

test("a call after a reply that was cut before anything of it could be seen is no compaction", () => {
  const recording = new ScriptedRecording();
  const before = [...PROMPT, used("a"), results(["a"])];
  recording.call(ask(PROMPT), calls({ id: "a" }));
  recording.cut(ask(before), { thinking: "hm", text: "never delivered", cut: "thinking" });
  recording.call(ask([...PROMPT, used("a"), results(["a"], "Nothing could be seen.")]));
  expect(recording.tree()).toEqual(["root", "extends 1", "branch 1"]);
});

test("a sub-agent that was given its parent's history and a task compacts nothing", () => {
  const recording = new ScriptedRecording();
  const before = [...PROMPT, used("a"), results(["a"])];
  recording.call(ask(PROMPT), calls({ id: "a" }));
  recording.call(ask(before), calls(agentCall("b", "Look into the parser.")));
  recording.call(ask([...PROMPT, used("a"), results(["a"], "Look into the parser.")], { agent: "A" }));
  expect(recording.tree()).toEqual(["root", "extends 1", "root 2 @A"]);
});

test("a request refused as malformed is sent again with other tools: the same try, degraded", () => {
  const recording = new ScriptedRecording();
  const refused: Step = { err: { status: 400, json: { error: { message: "bad thing" } } } };
  recording.call(ask(PROMPT), refused);
  recording.call(ask(PROMPT, { beta: "" }), refused);
  recording.call(ask([PROMPT[0], system("longer reminders")], { tools: ["Bash", "Agent", "Cron"] }), refused);
  recording.call(ask([PROMPT[0], system("longer reminders")], { tools: ["Bash", "Agent", "Cron"] }));
  expect(recording.tree()).toEqual(["root", "retry 1", "retry 1", "retry 1"]);
  expect(recording.reasons()[2]).toContain("degraded-resend");
});

test("search and fetch helpers serve the main agent and are not trained", () => {
  const recording = new ScriptedRecording();
  recording.call(ask(PROMPT), calls({ id: "a", name: "WebSearch" }));
  const search = ask([user("Perform a web search.")], { tools: [] });
  recording.call({
    ...search,
    body: { ...search.body, tools: [{ type: "web_search_20250305", name: "web_search" }] },
  });
  recording.call(ask([user("Summarise this page.")], { tools: [] }));
  recording.call(ask([...PROMPT, used("a"), results(["a"])]));
  expect(recording.tree()).toEqual(["root", "auxiliary excluded", "auxiliary excluded", "extends 1"]);
});

test("a text that was cut in its middle is adopted as text, not as tokens", () => {
  const recording = new ScriptedRecording();
  recording.cut(ask(PROMPT), { text: "I will look at the test first, then at the code.", cut: "text" });
  recording.call(ask([...PROMPT, text("I will look at the test"), user("The reply was cut off.")]));
  expect(recording.tree()).toEqual(["root", "extends 1"]);
  expect(recording.reasons()[1]).toContain("adopted-as-text");
});

test("a text that was delivered to its end is not adopted by its beginning", () => {
  const recording = new ScriptedRecording();
  recording.call(ask(PROMPT), { text: "I will look at the test first, then at the code." });
  recording.call(ask([...PROMPT, text("I will look at the test"), user("Go on.")]));
  expect(recording.tree()).toEqual(["root", "branch"]);
});

test("a session that is continued goes on from its history, under the same name or another", () => {
  const recording = new ScriptedRecording();
  recording.call(ask(PROMPT), { text: "Done." });
  recording.call(ask([...PROMPT, text("Done."), user("And now the docs.")]), { text: "Done too." });
  recording.call(
    ask([...PROMPT, text("Done."), user("And now the docs."), text("Done too."), user("More.")], {
      session: "s2",
    }),
  );
  recording.call(ask([user("Something else.")], { session: "s3" }));
  expect(recording.tree()).toEqual(["root", "extends 1", "extends 2", "root @s3"]);
});

test("a new tool found by search begins a branch that extends nothing", () => {
  const recording = new ScriptedRecording();
  const tools = ["Bash", "Agent", "WebFetch"];
  const after = [...PROMPT, used("a"), results(["a"])];
  recording.call(ask(PROMPT), calls({ id: "a" }));
  recording.call(ask(after, { tools }), calls({ id: "b" }));
  recording.call(ask([...after, used("b"), results(["b"])], { tools }));
  expect(recording.tree()).toEqual(["root", "branch", "extends 2"]);
  expect(recording.reasons()[1]).toContain("tools-changed");
});

test("two equal requests that are both being answered are two samples", () => {
  const recording = new ScriptedRecording();
  const [first, second] = [recording.open(ask(PROMPT)), recording.open(ask(PROMPT))];
  recording.end(first);
  recording.end(second);
  recording.call(ask(PROMPT));
  expect(recording.tree()).toEqual(["root", "branch", "retry 1"]);
});
