/** What each harness's calls say of themselves, from headers and shapes alone. */
import { expect, test } from "vitest";
import { type CallFacts, type CallSignals, type Message, NO_SIGNALS, readSignals } from "../src/index.js";

type Facts = Partial<Omit<CallFacts, "conversation">> & { tools?: string[]; messages?: Message[] };

const user = (text: string): Message => ({ role: "user", text });
const reply: Message = { role: "assistant", text: "yes", reasoning: "", toolCalls: [] };

function signals({ tools = ["edit"], messages = [user("task")], ...facts }: Facts): CallSignals {
  return readSignals({
    headers: {},
    dialect: "openai-chat",
    hostedTools: [],
    model: "m",
    conversation: {
      messages,
      tools: tools.map((name) => ({ name, description: "", parameters: null })),
    },
    ...facts,
  });
}

const CLAUDE = { "user-agent": "claude-cli/2.1.332 (external, sdk-cli)", "x-claude-code-session-id": "s" };
const OPENCODE = {
  "user-agent": "opencode/1.18.33 ai-sdk",
  "x-session-id": "ses",
  "x-session-affinity": "ses",
};
const CODEX = { "user-agent": "codex_exec/0.171.0", "session-id": "t0", "thread-id": "t0" };
const PI_TOOLS = ["read", "bash", "edit", "write"];

test.each<[string, Facts, Partial<CallSignals>]>([
  ["its main agent", {}, { agent: undefined, session: "s", purpose: undefined, namesAgents: true }],
  [
    "a sub-agent inside another",
    { headers: { "x-claude-code-agent-id": "B", "x-claude-code-parent-agent-id": "A" } },
    { agent: "B", parentAgent: "A" },
  ],
  ["a search", { tools: [], hostedTools: ["web_search_20250305"] }, { purpose: "helper" }],
  ["a fetch", { tools: [] }, { purpose: "helper" }],
  ["an agent without tools", { tools: [], headers: { "x-claude-code-agent-id": "B" } }, { purpose: "side" }],
  ["a history without tools", { tools: [], messages: [user("a"), reply, user("b")] }, { purpose: "side" }],
  [
    "the mark that compactions carry",
    { headers: { "anthropic-beta": "a-1, fallback-credit-2026-06-01" } },
    { mayCompact: true, purpose: undefined },
  ],
])("Claude Code: %s", (_, facts, expected) => {
  const headers = { ...CLAUDE, ...facts.headers };
  expect(signals({ ...facts, headers })).toMatchObject({ harness: "claude-code", ...expected });
});

test.each<[string, Facts, Partial<CallSignals>]>([
  ["its main agent", {}, { agent: undefined, session: "ses", purpose: "agent", namesAgents: true }],
  [
    "a sub-agent",
    { headers: { "x-session-id": "sub", "x-parent-session-id": "ses" } },
    { agent: "sub", parentAgent: "ses", session: "sub" },
  ],
  ["a title", { tools: [], messages: [user("name this"), user("task")] }, { purpose: "title" }],
  ["a title or a compaction", { tools: [] }, { purpose: "side" }],
  ["a history without tools", { tools: [], messages: [user("a"), reply, user("b")] }, { purpose: "side" }],
])("OpenCode: %s", (_, facts, expected) => {
  const headers = { ...OPENCODE, ...facts.headers };
  expect(signals({ ...facts, headers })).toMatchObject({ harness: "opencode", ...expected });
});

const kind = (request_kind: string) => ({ "x-codex-turn-metadata": JSON.stringify({ request_kind }) });

test.each<[string, Facts["headers"], Partial<CallSignals>]>([
  ["its main agent", kind("turn"), { agent: undefined, session: "t0", purpose: "agent", namesAgents: true }],
  ["a window", { "x-codex-window-id": "t0:1" }, { window: "t0:1" }],
  ["a compaction", kind("compaction"), { purpose: "compaction" }],
  [
    "a sub-agent of the main agent",
    { "thread-id": "t1", "x-codex-parent-thread-id": "t0", "x-openai-subagent": "collab_spawn" },
    { agent: "t1", parentAgent: undefined, purpose: "agent" },
  ],
  [
    "a sub-agent of a sub-agent",
    { "thread-id": "t2", "x-codex-parent-thread-id": "t1" },
    { agent: "t2", parentAgent: "t1" },
  ],
  ["a kind of request that is unknown", kind("guardian"), { purpose: "helper" }],
  ["consolidation of memories", { "x-openai-subagent": "memory_consolidation" }, { purpose: "helper" }],
  ["metadata that is no JSON", { "x-codex-turn-metadata": "<redacted>" }, { purpose: "agent" }],
])("Codex: %s", (_, headers, expected) => {
  expect(signals({ headers: { ...CODEX, ...headers } })).toMatchObject({ harness: "codex", ...expected });
});

test("pi is told by its client and its tools, and names a session on Responses", () => {
  const headers = { "user-agent": "OpenAI/JS 6.26.0" };
  expect(signals({ headers, tools: PI_TOOLS })).toMatchObject({ harness: "pi", session: undefined });
  expect(signals({ headers: { ...headers, session_id: "p" }, tools: PI_TOOLS }).session).toBe("p");
  expect(signals({ headers }).harness).toBe("generic");
});

test("others say a name at most, and a session", () => {
  expect(signals({})).toEqual({ ...NO_SIGNALS, model: "m" });
  expect(signals({ headers: { "user-agent": "QwenCode/0.24.4 (linux; x64)" } }).harness).toBe("qwen-code");
  expect(signals({ headers: { "x-litellm-session-id": "c" } })).toMatchObject({
    harness: "openhands",
    session: "c",
    namesAgents: false,
  });
  expect(signals({ tools: [], hostedTools: ["web_search"] }).purpose).toBe("helper");
});
