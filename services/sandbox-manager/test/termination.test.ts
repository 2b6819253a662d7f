import { KeepPolicy, TerminationReason as Reason } from "@mortise/contracts";
import type { HarnessEnd } from "@mortise/harness";
import { describe, expect, test } from "vitest";
import { NO_OUTPUT } from "../src/backend/output.js";
import { CgroupHost } from "../src/backend/runc/cgroup.js";
import type { ExecResult, Outcome } from "../src/backend/types.js";
import { keeps, terminationOf } from "../src/trial/termination.js";

const result = (outcome: Outcome, usage: ExecResult["usage"] = {}): ExecResult => ({
  outcome,
  stdout: NO_OUTPUT,
  stderr: NO_OUTPUT,
  usage,
  wallMs: 1,
  isInsecure: false,
});
const exited = (code: number): Outcome => ({ kind: "exited", code });
const KINDS: Record<number, HarnessEnd["kind"]> = { 0: "completed", 6: "turn-limit", 3: "proxy-failure" };
const endOf = (outcome: Outcome) => ({
  kind: outcome.kind === "exited" ? (KINDS[outcome.code] ?? "agent-crash") : ("agent-crash" as const),
});

describe("why a trial ended", () => {
  test.each<[string, Outcome, Partial<Parameters<typeof terminationOf>[0]>, Reason]>([
    ["exit 0", exited(0), {}, Reason.COMPLETED],
    ["a crash", exited(1), {}, Reason.AGENT_CRASH],
    ["a listed code", exited(6), {}, Reason.TURN_LIMIT],
    ["a listed infrastructure code", exited(3), {}, Reason.PROXY_FAILURE],
    ["a crash without a proxy", exited(1), { isModelUnreachable: true }, Reason.PROXY_FAILURE],
    [
      "success though the proxy went away at the end",
      exited(0),
      { isModelUnreachable: true },
      Reason.COMPLETED,
    ],
    ["a timeout", { kind: "timeout" }, {}, Reason.AGENT_TIMEOUT],
    ["a timeout without a proxy", { kind: "timeout" }, { isModelUnreachable: true }, Reason.PROXY_FAILURE],
    ["a signal", { kind: "signalled", signal: "SIGSEGV" }, {}, Reason.AGENT_CRASH],
    ["out of memory", { kind: "out-of-memory", kills: 1 }, {}, Reason.RESOURCE_LIMIT],
    ["refused", { kind: "refused", reason: "" }, {}, Reason.SETUP_FAILED],
    ["lost", { kind: "lost", reason: "" }, {}, Reason.SANDBOX_LOST],
    ["cancelled", { kind: "cancelled" }, {}, Reason.CANCELLED],
  ])("%s", (_, outcome, changes, reason) => {
    const evidence = { result: result(outcome), isModelUnreachable: false, end: endOf(outcome), ...changes };
    expect(terminationOf(evidence)).toBe(reason);
  });

  test("refused forks explain a crash, not a success", () => {
    const evidence = (code: number) => ({
      result: result(exited(code), { pidsRefusals: 2 }),
      isModelUnreachable: false,
      end: endOf(exited(code)),
    });
    expect(terminationOf(evidence(1))).toBe(Reason.RESOURCE_LIMIT);
    expect(terminationOf(evidence(0))).toBe(Reason.COMPLETED);
  });

  test("a change too large to carry is a resource limit", () => {
    const patch = { base: "", entries: [], skipped: [{ path: "a", reason: "over-limit" as const }] };
    const evidence = { result: result(exited(0)), patch, isModelUnreachable: false, end: endOf(exited(0)) };
    expect(terminationOf(evidence)).toBe(Reason.RESOURCE_LIMIT);
  });
});

describe("cgroup hierarchies", () => {
  const line = (point: string, type: string, options: string) =>
    `1 2 0:3 / ${point} rw - ${type} cgroup rw,${options}`;

  test("a hybrid host counts as v1, a host without controllers as none", () => {
    const hybrid = [
      line("/sys/fs/cgroup/memory", "cgroup", "memory"),
      line("/sys/fs/cgroup/pids", "cgroup", "pids"),
      line("/sys/fs/cgroup/unified", "cgroup2", ""),
    ].join("\n");
    expect(CgroupHost.detect(hybrid)?.version).toBe(1);
    expect(CgroupHost.detect("")).toBeUndefined();
    expect(CgroupHost.detect(line("/nowhere", "cgroup2", ""))).toBeUndefined();
  });
});

test("what is kept follows the policy", () => {
  const kept = (policy: KeepPolicy) =>
    [Reason.COMPLETED, Reason.AGENT_CRASH].map((end) => keeps(policy, end));
  expect(kept(KeepPolicy.NEVER)).toEqual([false, false]);
  expect(kept(KeepPolicy.UNSPECIFIED)).toEqual([false, false]);
  expect(kept(KeepPolicy.FAILED)).toEqual([false, true]);
  expect(kept(KeepPolicy.ALWAYS)).toEqual([true, true]);
});
