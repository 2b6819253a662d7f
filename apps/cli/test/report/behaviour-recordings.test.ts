/** The behaviour scan on what real harnesses sent, and its categories against the adapters' own vocabularies. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CATEGORIES, categoryOf, scanBehaviour, type Transcript } from "@mortise/evaluation";
import type { ToolUse } from "@mortise/harness";
import { HARNESSES } from "@mortise/harnesses";
import { describe, expect, test } from "vitest";
import { isRecord, readRecording } from "../../src/capture/recording.js";
import { recordedTranscript } from "./recorded-transcript.js";

const TRACES = fileURLToPath(new URL("../../../../test/fixtures/harness-traces/", import.meta.url));
const HARNESS_OF: Readonly<Record<string, string>> = {
  cc: "claude-code",
  ccm: "claude-code",
  cx: "codex",
  oc: "opencode",
  pi: "pi",
};
const names = readdirSync(TRACES).filter((name) => /^(cc|ccm|cx|oc|pi)-.*\.jsonl$/.test(name));
const transcript = (name: string): Transcript =>
  recordedTranscript(join(TRACES, name), HARNESS_OF[name.split("-")[0]!]!);
const scan = (name: string) => scanBehaviour(transcript(name));

describe("recordings of the harnesses", () => {
  test("Claude Code: writes, fails at an unknown argument, lists, shows, edits twice", () => {
    expect(scan("cc-tools.jsonl")).toMatchObject({
      calls: 10,
      callsBy: { edit: 3, run: 3, read: 2, delegate: 1, other: 1 },
      malformedCalls: 3,
      failedCommands: 1,
      editedFiles: 2,
      filesReadBeforeEdit: 0,
      rereadsEdited: true,
      runsTests: false,
      finish: "answer",
    });
  });

  test("Codex: a patch through its shell, one as a tool it does not have, commands that fail", () => {
    expect(scan("cx-tools.jsonl")).toMatchObject({
      calls: 10,
      callsBy: { run: 4, edit: 2, read: 1, search: 1, plan: 1, other: 1 },
      malformedCalls: 4,
      failedCommands: 2,
      editedFiles: 1,
      filesReadBeforeEdit: 1,
      rereadsEdited: false,
      runsTests: false,
      finish: "answer",
    });
  });

  test("OpenCode: calls it cannot carry out become calls of a tool of its own", () => {
    expect(scan("oc-tools.jsonl")).toMatchObject({
      calls: 11,
      callsBy: { edit: 3, read: 2, run: 2, other: 2, search: 1, plan: 1 },
      malformedCalls: 3,
      // It does not show the model how a command ended.
      failedCommands: 0,
      editedFiles: 2,
      filesReadBeforeEdit: 0,
      rereadsEdited: true,
      finish: "answer",
    });
  });

  test("pi: refuses a call without its argument", () => {
    expect(scan("pi-chat.jsonl")).toMatchObject({
      calls: 7,
      callsBy: { search: 2, run: 2, edit: 1, read: 1, other: 1 },
      malformedCalls: 2,
      failedCommands: 1,
      editedFiles: 1,
      filesReadBeforeEdit: 0,
      rereadsEdited: true,
      finish: "answer",
    });
  });

  test.each(names)("%s: every call is counted in one category", (name) => {
    const { turns } = transcript(name);
    const found = scan(name);
    expect(found.calls).toBe(turns.reduce((sum, turn) => sum + turn.calls.length, 0));
    expect(Object.values(found.callsBy).reduce((sum, count) => sum + count, 0)).toBe(found.calls);
    expect(found.malformedCalls).toBeLessThanOrEqual(found.calls);
  });
});

describe("categories", () => {
  const vocabularies = HARNESSES.flatMap((adapter) =>
    adapter.wireApis.map((wire) => [adapter.name, wire, adapter.tools(wire)] as const),
  );

  test.each(vocabularies)(
    "%s over %s: what its adapter runs, writes, delegates and ends with",
    (harness, _, tools) => {
      const is = (use: ToolUse | undefined, ...categories: string[]) => {
        if (use !== undefined) expect(categories).toContain(categoryOf(harness, use.name));
      };
      is(tools.run?.("true"), "run");
      is(tools.write?.("/w/a", "x"), "edit");
      is(tools.replace?.("a", "b"), "edit");
      is(tools.delegate?.("p"), "delegate");
      is(tools.awaitDelegate?.('{"agent_id":"a"}'), "delegate");
      const end = tools.finish?.("done");
      if (end === undefined) return;
      const calls = [
        { name: end.name, arguments: JSON.stringify(end.arguments), isCut: false, result: undefined },
      ];
      expect(scanBehaviour({ harness, offered: undefined, turns: [{ text: "", calls }] }).finish).toBe(
        "tool",
      );
    },
  );

  test("what the harnesses offer is known, but for what no coding agent does with a repository", () => {
    const unknown = new Set<string>();
    for (const name of names)
      for (const tool of offeredIn(name))
        if (categoryOf(HARNESS_OF[name.split("-")[0]!]!, tool) === "other") unknown.add(tool);
    expect([...unknown].sort()).toEqual([
      "CronCreate",
      "CronDelete",
      "CronList",
      "DeferredToolPlaceholder",
      "EnterWorktree",
      "ExitWorktree",
      "ReportFindings",
      "ScheduleWakeup",
      "Skill",
      "request_user_input",
      "skill",
    ]);
  });

  test("a name no harness has is other, and so is one of Object's own", () => {
    expect([
      categoryOf("pi", "nothing"),
      categoryOf("pi", "constructor"),
      categoryOf("x", "toString"),
    ]).toEqual(["other", "other", "other"]);
    expect(CATEGORIES).toContain(categoryOf("a harness without an adapter", "bash"));
  });
});

/** As the policy is shown them: tools of a namespace by one flat name. */
function offeredIn(name: string): string[] {
  return readRecording(join(TRACES, name)).flatMap(({ kind, fields }) => {
    const tools = kind === "req" && isRecord(fields.body) ? fields.body.tools : undefined;
    return (Array.isArray(tools) ? tools : []).filter(isRecord).flatMap((tool): string[] => {
      const called = isRecord(tool.function) ? tool.function.name : (tool.name ?? tool.type);
      if (!Array.isArray(tool.tools)) return [String(called)];
      return tool.tools.filter(isRecord).map((inner) => `${called}__${inner.name}`);
    });
  });
}
