/**
 * A recording written by a test: requests as the measured harnesses send them (reference of headers and
 * bodies: docs of the dialects), replies as steps. Gives the lines a replay prints.
 */

import type { RecordedEvent } from "../../src/capture/recording.js";
import { replayEvents } from "../../src/capture/replay.js";
import { replayedLine } from "../../src/commands/capture.js";

export type Step = Record<string, unknown>;

export interface Ask {
  readonly url: string;
  readonly headers: Record<string, unknown>;
  readonly body: Record<string, unknown>;
}

export class ScriptedRecording {
  private readonly events: RecordedEvent[] = [];
  private nextId = 1;

  /** A call that is still being answered. */
  open({ url, headers, body }: Ask, step: Step = { text: "ok" }): number {
    const id = this.nextId++;
    this.add(id, "req", { method: "POST", url, headers, body });
    this.add(id, "step", { step });
    return id;
  }

  end(id: number, status = 200): void {
    this.add(id, "res", { status });
  }

  /** A call, answered to its end; with an `err` in the step, refused with its status. */
  call(ask: Ask, step: Step = { text: "ok" }): number {
    const id = this.open(ask, step);
    this.end(id, (step.err as { status: number } | undefined)?.status ?? 200);
    return id;
  }

  /** A call whose connection breaks. */
  cut(ask: Ask, step: Step): number {
    const id = this.open(ask, step);
    this.add(id, "stub_error", {});
    this.add(id, "client_closed_early", {});
    return id;
  }

  /** `relation[ parent] @thread role`, a line a call; thread main and role train are left out. */
  tree(): string[] {
    return replayEvents(this.events, "scripted").map((call) => {
      const { thread, parent, relation, role } = replayedLine(call);
      const where = thread === "main" ? [] : [`@${thread}`];
      return [
        relation,
        ...(parent === null ? [] : [parent]),
        ...where,
        ...(role === "train" ? [] : [role]),
      ].join(" ");
    });
  }

  reasons(): string[] {
    return replayEvents(this.events, "scripted").map((call) => replayedLine(call).reason);
  }

  private add(id: number, kind: string, fields: Record<string, unknown>): void {
    this.events.push({ id, kind, fields, line: this.events.length + 1 });
  }
}

export const TOO_LONG: Step = {
  err: { status: 400, json: { error: { message: "prompt is too long: 210000 tokens > 200000 maximum" } } },
};

/** Steps. */
export const calls = (...tools: { id: string; name?: string; raw?: string }[]): Step => ({
  text: "go",
  tools: tools.map((tool) => ({ name: "Bash", raw: '{"command":"ls"}', ...tool })),
});

/** Claude Code, on Messages. */
export const claude = {
  ask(
    messages: unknown[],
    {
      agent,
      parent,
      session = "s1",
      tools = ["Bash", "Agent"],
      beta = "claude-code-20250219",
    }: {
      agent?: string;
      parent?: string;
      session?: string;
      tools?: string[];
      beta?: string;
    } = {},
  ): Ask {
    return {
      url: "/v1/messages?beta=true",
      headers: {
        "user-agent": "claude-cli/2.1.332 (external, sdk-cli)",
        "x-claude-code-session-id": session,
        "anthropic-beta": beta,
        ...(agent && { "x-claude-code-agent-id": agent }),
        ...(parent && { "x-claude-code-parent-agent-id": parent }),
      },
      body: {
        model: "m",
        stream: true,
        system: [{ type: "text", text: agent ? "You are a sub-agent." : "You are an agent." }],
        messages,
        ...(tools.length > 0 && { tools: tools.map((name) => ({ name, input_schema: { type: "object" } })) }),
      },
    };
  },
  user: (...texts: string[]) => ({
    role: "user",
    content: texts.map((text) => ({ type: "text", text })),
  }),
  system: (text: string) => ({ role: "system", content: text }),
  text: (text: string) => ({ role: "assistant", content: [{ type: "text", text }] }),
  used: (...ids: string[]) => ({
    role: "assistant",
    content: [
      { type: "text", text: "go" },
      ...ids.map((id) => ({ type: "tool_use", id, name: "Bash", input: { command: "ls" } })),
    ],
  }),
  results: (ids: string[], ...texts: string[]) => ({
    role: "user",
    content: [
      ...ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: `result of ${id}` })),
      ...texts.map((text) => ({ type: "text", text })),
    ],
  }),
};

interface ChatOptions {
  tools?: string[];
  model?: string;
  headers?: Record<string, string>;
}

/** Any client on Chat Completions. */
export const chat = {
  ask(messages: unknown[], { tools = ["bash"], model = "m", headers = {} }: ChatOptions = {}): Ask {
    const offered = tools.map((name) => ({ type: "function", function: { name, parameters: {} } }));
    return {
      url: "/v1/chat/completions",
      headers,
      body: { model, stream: true, messages, ...(offered.length > 0 && { tools: offered }) },
    };
  },
  system: (content: string) => ({ role: "system", content }),
  user: (content: string) => ({ role: "user", content }),
  text: (content: string) => ({ role: "assistant", content }),
  used: (...ids: string[]) => ({
    role: "assistant",
    content: null,
    tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "bash", arguments: "{}" } })),
  }),
  result: (id: string, content = `result of ${id}`) => ({ role: "tool", tool_call_id: id, content }),
};

/** OpenCode, on Chat Completions: every agent has a session. */
export const opencode = {
  ask(
    messages: unknown[],
    { session = "ses_main", parent, ...rest }: ChatOptions & { session?: string; parent?: string } = {},
  ): Ask {
    const headers = {
      "user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23",
      "x-session-id": session,
      ...(parent && { "x-parent-session-id": parent }),
    };
    return chat.ask(messages, { ...rest, headers });
  },
  title: (prompt: string, options: { session?: string; parent?: string; model?: string } = {}) =>
    opencode.ask([chat.system("Titles."), chat.user("Name this:"), chat.user(prompt)], {
      tools: [],
      model: "small",
      ...options,
    }),
};

/** Codex, on Responses. */
export const codex = {
  ask(
    input: unknown[],
    {
      thread = "t0",
      parent,
      window = 0,
      kind = "turn",
      tools = ["exec_command"],
    }: {
      thread?: string;
      parent?: string;
      window?: number;
      kind?: string;
      tools?: string[];
    } = {},
  ): Ask {
    const metadata = { session_id: "t0", thread_id: thread, request_kind: kind, window_number: window };
    return {
      url: "/v1/responses",
      headers: {
        "user-agent": "codex_exec/0.171.0",
        "session-id": "t0",
        "thread-id": thread,
        "x-codex-window-id": `${thread}:${window}`,
        "x-codex-turn-metadata": metadata,
        ...(parent && { "x-codex-parent-thread-id": parent, "x-openai-subagent": "collab_spawn" }),
      },
      body: {
        model: "m",
        stream: true,
        input,
        tools: tools.map((name) => ({ type: "function", name, parameters: { type: "object" } })),
      },
    };
  },
  message: (role: string, text: string) => ({
    type: "message",
    role,
    content: [{ type: role === "assistant" ? "output_text" : "input_text", text }],
  }),
  used: (id: string, name = "exec_command", args = "{}") => ({
    type: "function_call",
    call_id: id,
    name,
    arguments: args,
  }),
  output: (id: string) => ({ type: "function_call_output", call_id: id, output: `result of ${id}` }),
};
