/** Evidence written and read: what comes back is what was kept, and nothing else is taken for it. */
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { decodeEvidence, encodeEvidence } from "../../src/run/evidence.js";
import { interpreterOf } from "../../src/run/plan.js";
import type { RunRecord } from "../../src/run/run-record.js";
import { signsIn } from "../../src/run/signs.js";

const RUN: RunRecord = {
  task: { id: "t", digest: "d" },
  kind: "reward",
  nonce: "n",
  hasChannel: false,
  hasChange: true,
  steps: [
    {
      name: "verify",
      exitCode: 3,
      signal: "",
      timedOut: false,
      outOfMemory: false,
      outputTruncated: true,
      wallMs: 12,
      stdout: new Uint8Array([0, 255, 10]),
      stderr: new Uint8Array(0),
      files: [{ path: "/logs/verifier/reward.txt", content: new Uint8Array([49]), refused: "" }],
    },
  ],
  stripped: [{ path: "setup.cfg", reason: "configures the tests" }],
  diffs: [{ name: "tests", rung: "fuzz", failure: "" }],
};

test("a record comes back as it was, bytes and all", () => {
  expect(decodeEvidence(encodeEvidence(RUN))).toEqual(RUN);
});

test("equal runs have equal bytes", () => {
  expect(Buffer.from(encodeEvidence(RUN)).equals(Buffer.from(encodeEvidence(structuredClone(RUN))))).toBe(
    true,
  );
});

test.each([
  ["no gzip", Buffer.from("{}")],
  ["no JSON", gzipSync("x")],
  ["another format", gzipSync(JSON.stringify({ ...RUN, format: "mortise-evidence/2" }))],
  ["a field more", gzipSync(JSON.stringify({ format: "mortise-evidence/1", ...RUN, steps: [], more: 1 }))],
])("%s is refused", (_, bytes) => {
  expect(() => decodeEvidence(bytes)).toThrow(/mortise-evidence\/1/);
});

test.each([
  ["#!/bin/bash\nx", ["/bin/bash"]],
  ["#! /usr/bin/env bash -e\nx", ["/usr/bin/env", "bash -e"]],
  ["echo\n#!/bin/bash", ["/bin/sh"]],
  ["#!/usr/bin/python3", ["/usr/bin/python3"]],
])("%j is run by %j", (script, interpreter) => {
  expect(interpreterOf(script)).toEqual(interpreter);
});

test.each([
  ["/tests/test.sh: line 3: uv: command not found", "a program is absent"],
  ["/tests/test.sh: 3: uv: not found", "a program is absent"],
  ["/tests/test.sh: 3: exec: node: not found", "a program is absent"],
  ["/usr/bin/python3: No module named pytest", "a module of the tests is absent"],
  ["curl: (6) Could not resolve host: astral.sh", "no name resolution"],
  ["curl: (7) Failed to connect", "the network was needed"],
  ["ERROR: Could not find a version that satisfies the requirement x", "packages were to be fetched"],
  ["tee: log: No space left on device", "no space left on the device"],
])("%s: %s", (line, reason) => {
  expect(signsIn(Buffer.from(`before\n${line}\nafter\n`))).toEqual([`${reason}: ${line}`]);
});

test("ordinary output has no sign", () => {
  const text =
    "FAILED t.py::a - KeyError: 'x' not found\nassert 'command not found' in err\n404: page not found\n";
  expect(signsIn(Buffer.from(text))).toEqual([]);
});
