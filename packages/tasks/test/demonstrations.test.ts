import { Template } from "@huggingface/jinja";
import { describe, expect, test } from "vitest";
import {
  type Demonstration,
  demoChatTemplate,
  demonstration,
  demonstrationLines,
  demoTools,
  generateDemonstrations,
  planDemoTasks,
} from "../src/index.js";

const { train, heldOut } = planDemoTasks({ seed: 5 });
const tasks = new Map(train.map((task) => [task.id, task]));
const demonstrations = generateDemonstrations(train, { seed: 5, count: 4000 });

function editOf(entry: Demonstration): { old: string; new: string } {
  const answer = entry.messages[1];
  if (answer?.role !== "assistant" || answer.content !== null)
    throw new Error("the second message is no tool call");
  return JSON.parse(answer.tool_calls[0]!.function.arguments);
}

describe("demonstrations", () => {
  const wrong = demonstrations.filter(
    (entry) => JSON.stringify(editOf(entry)) !== JSON.stringify(tasks.get(entry.taskId)?.gold),
  );

  test("are wrong in the share asked for", () => {
    expect(wrong.length / demonstrations.length).toBeCloseTo(0.6, 1);
    const all = (wrongShare: number) =>
      generateDemonstrations(train, { seed: 1, count: 50, wrongShare }).filter(
        (entry) => editOf(entry).new === tasks.get(entry.taskId)?.gold.new,
      ).length;
    expect([all(0), all(1)]).toEqual([50, 0]);
  });

  test("show one habit per context in the share asked for", () => {
    const byContext = new Map<string, number[]>();
    for (const entry of wrong) {
      const task = tasks.get(entry.taskId)!;
      const edit = JSON.stringify(editOf(entry));
      const index = task.wrongEdits.findIndex((candidate) => JSON.stringify(candidate) === edit);
      expect(index).toBeGreaterThanOrEqual(0);
      const counts = byContext.get(task.context) ?? task.wrongEdits.map(() => 0);
      counts[index] = (counts[index] ?? 0) + 1;
      byContext.set(task.context, counts);
    }
    // The habit also gets its part of the uniform draws: 0.7 + 0.3 / n, about 0.76 for the usual n of 5.
    const habitual = [...byContext.values()].reduce((sum, counts) => sum + Math.max(...counts), 0);
    expect(habitual / wrong.length).toBeGreaterThan(0.72);
    expect(habitual / wrong.length).toBeLessThan(0.82);
  });

  test("come from training tasks only", () => {
    expect(() => generateDemonstrations([...train, heldOut[0]!], { seed: 1 })).toThrow("is held out");
    expect(() => generateDemonstrations([], { seed: 1 })).toThrow("no tasks");
  });

  test("are the same for the same seed, one JSON object a line", () => {
    const lines = demonstrationLines(demonstrations);
    expect(demonstrationLines(generateDemonstrations(train, { seed: 5, count: 4000 }))).toBe(lines);
    expect(
      lines
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual(demonstrations);
  });
});

describe("the chat template", () => {
  const template = new Template(demoChatTemplate);
  const task = train.find((candidate) => candidate.context === "countAbove.comparison-equality.1")!;
  const messages = demonstration(task, task.gold).messages.map((message) =>
    message.role === "assistant" && message.content === null
      ? { ...message, tool_calls: message.tool_calls.map(withMapping) }
      : message,
  );
  const { old, new: replacement } = task.gold;
  const first = `<|im_start|>user\n${task.prompt}<|im_end|>\n<|im_start|>assistant\n`;
  const whole = `${first}<tool_call>edit ${old} => ${replacement}</tool_call><|im_end|>\n<|im_start|>tool\nok<|im_end|>\n<|im_start|>assistant\ndone<|im_end|>`;

  function withMapping(call: { function: { name: string; arguments: string } }) {
    return { ...call, function: { ...call.function, arguments: JSON.parse(call.function.arguments) } };
  }

  test("renders a trial exactly", () => {
    expect(template.render({ messages, tools: demoTools })).toBe(whole);
    expect(template.render({ messages, tools: null })).toBe(whole);
  });

  test("opens the assistant's turn, and what follows a turn extends what came before", () => {
    const open = (count: number) =>
      template.render({ messages: messages.slice(0, count), tools: demoTools, add_generation_prompt: true });
    expect(open(1)).toBe(first);
    expect(whole.startsWith(open(1))).toBe(true);
    expect(whole.startsWith(open(3))).toBe(true);
  });

  test("orders arguments by the schema and leaves system messages out", () => {
    const call = { function: { name: "edit", arguments: { new: "b", old: "a" } } };
    const chat = [
      { role: "system", content: "rules" },
      { role: "assistant", content: "x", tool_calls: [call, call] },
    ];
    expect(template.render({ messages: chat, tools: demoTools })).toBe(
      "<|im_start|>assistant\nx<tool_call>edit a => b</tool_call><tool_call>edit a => b</tool_call><|im_end|>",
    );
    expect(template.render({ messages: chat })).toContain("edit b => a");
  });

  test("refuses arguments that are still JSON text", () => {
    const calls = [{ function: { name: "edit", arguments: "{}" } }];
    expect(() => template.render({ messages: [{ role: "assistant", tool_calls: calls }] })).toThrow(
      "mapping",
    );
  });
});
