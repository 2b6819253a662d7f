import { expect, test } from "vitest";
import { messagesOf } from "../src/backend/runc/runc-log.js";

test("what runc says is told without the time it said it", () => {
  const line = (second: number) =>
    `time="2026-12-01T04:07:0${second}Z" level=error msg="runc run failed: exec: \\"node\\": executable file not found in $PATH"\n`;
  expect(messagesOf(line(1))).toBe('runc run failed: exec: "node": executable file not found in $PATH');
  expect(messagesOf(line(2))).toBe(messagesOf(line(1)));
});

test("several lines, bare words, other forms and Go's own escapes are kept", () => {
  const log = 'time="x" level=warning msg=short\npanic: no log line\ntime="x" level=error msg="a \\x07"\n';
  expect(messagesOf(log)).toBe('short\npanic: no log line\n"a \\x07"');
  expect(messagesOf("")).toBe("");
});
