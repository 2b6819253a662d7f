/** `mortise capture replay` as it is run: its lines, its table, and what it refuses. Uses dist. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { replay } from "../../src/capture/replay.js";
import { replayLines } from "../../src/commands/capture.js";
import { fileOf } from "./expected-trees.js";

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
/** The command line takes seconds to start on a busy machine. */
const START_TIMEOUT_MS = 180_000;

const folder = mkdtempSync(join(tmpdir(), "mortise-replay-"));
afterAll(() => rmSync(folder, { recursive: true }));

function mortise(...args: readonly string[]) {
  const command = [MAIN, "capture", "replay", ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: "utf8" });
  return { status, stdout, stderr };
}

function written(...lines: readonly unknown[]): string {
  const file = join(folder, "recording.jsonl");
  writeFileSync(
    file,
    lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"),
  );
  return file;
}

test(
  "with --json every call is one line of the fixed shape, in file order",
  () => {
    const { status, stdout } = mortise(fileOf("cc-agent-fg"), "--json");
    expect(status).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).id)).toEqual([1, 2, 3, 4]);
    expect(JSON.parse(lines[1]!)).toEqual({
      id: 2,
      thread: "acdbaa48cf42ea258",
      parent: 1,
      relation: "root",
      role: "train",
      reason: "sub-agent",
    });
  },
  START_TIMEOUT_MS,
);

test(
  "a line that cannot be read is named, with the exit code of an operator's mistake",
  () => {
    const file = written({ ev: "note", id: 1 }, "{");
    const { status, stdout, stderr } = mortise(file, "--json");
    expect(status).toBe(2);
    expect(stderr).toContain(`MORTISE_OPERATOR_RECORDING (${file}:2)`);
    const error = { code: "MORTISE_OPERATOR_RECORDING", field: `${file}:2` };
    expect(JSON.parse(stdout)).toMatchObject({ error });
  },
  START_TIMEOUT_MS,
);

test("without --json there is a table", () => {
  expect(replayLines(fileOf("oc-bare"), false)).toEqual([
    "id  thread  parent  relation   role      reason",
    "1   main    -       auxiliary  excluded  title",
    "2   main    -       root       train     main",
  ]);
});

test("a recording without a call gives nothing", () => {
  expect(replayLines(fileOf("cx-wirechat"), true)).toEqual([]);
});

test("ids need not be numbers, and may come again", () => {
  const body = { model: "m", messages: [{ role: "user", content: "x" }] };
  const url = "/base/v1/chat/completions?x=1";
  const call = { id: "a", ev: "req", method: "POST", url, headers: {}, body };
  const file = written(
    call,
    { id: "a", ev: "step", step: { text: "y" } },
    { id: "a", ev: "res", status: 200 },
    call,
  );
  expect(replayLines(file, true).map((line) => JSON.parse(line))).toMatchObject([
    { id: "a", relation: "root", parent: null },
    { id: "a", relation: "retry", parent: "a" },
  ]);
});

test.each<[string, unknown, string]>([
  ["is not JSON", "{", "the line is not JSON"],
  ["is not an object", "[]", "the line is not a JSON object"],
  ["has no ev", { id: 1 }, "ev is not a string"],
  ["has no id", { ev: "req" }, "id is neither a string nor a number"],
])("a line that %s is refused by file and line", (_, line, what) => {
  const file = written({ ev: "note", id: 1 }, line);
  expect(() => replay(file)).toThrow(`${file}:2: `);
  expect(() => replay(file)).toThrow(what);
});

test("a body the proxy would refuse costs its own line only", () => {
  const call = { id: 1, ev: "req", method: "POST", url: "/v1/messages", headers: {}, body: { messages: [] } };
  const body = { messages: [{ role: "user", content: "x" }] };
  const file = written(call, { id: 1, ev: "res", status: 400 }, { ...call, id: 2, body });
  expect(replayLines(file, true).map((line) => JSON.parse(line))).toMatchObject([
    {
      id: 1,
      relation: "auxiliary",
      role: "excluded",
      reason: expect.stringMatching(/^refused: .*messages is empty\.$/),
    },
    { id: 2, thread: "main", relation: "root", role: "train" },
  ]);
});

test("events that belong to no call are passed over", () => {
  const body = { messages: [{ role: "user", content: "x" }] };
  const call = { id: 1, ev: "req", method: "POST", url: "/v1/messages", headers: {}, body };
  const file = written({ ev: "listening", port: 1 }, call, { ev: "exit", code: 0 });
  expect(replayLines(file, true).map((line) => JSON.parse(line))).toMatchObject([
    { id: 1, relation: "root" },
  ]);
});

test("a file that is not there is named", () => {
  expect(() => replay(join(folder, "absent.jsonl"))).toThrow("absent.jsonl");
});
