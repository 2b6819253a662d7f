/** What a protocol file says reaches the run it makes, and what it cannot say is refused by its field. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EvaluationProtocol, MortiseError, SiteConfig } from "@mortise/contracts";
import { afterAll, describe, expect, it } from "vitest";
import { assertHarnessVersion } from "../../src/evaluation/harness-version.js";
import { readProtocol } from "../../src/evaluation/protocol-file.js";
import { evaluationRun } from "../../src/evaluation/run-file.js";

const directory = mkdtempSync(join(tmpdir(), "mortise-protocol-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const read = (text: string) => {
  const file = join(directory, "protocol.toml");
  writeFileSync(file, `schema = 1\nname = "p"\n${text}`);
  return readProtocol(file);
};
const runOf = (protocol: EvaluationProtocol) =>
  evaluationRun({
    runId: "e1",
    protocol,
    checkpoint: "/policy",
    engine: { kind: "embedded" },
    harness: "mini",
    index: "/index",
    nTasks: 5,
    concurrency: 3,
  });

describe("a protocol file", () => {
  it("becomes a run without a trainer, setting by setting", async () => {
    const protocol = await read(`
attempts = 4
seed = 9
maxRetries = 1
network = "closed"
shownTests = "copy"
sampling = { temperature = 0.5, maxTokensPerTurn = 77 }
prompt = { instruction = "{instruction} ({tests})", history = "strip", lateSystem = "keep", thinking = "off" }
[limits]
maxTurns = 11
maxTurnsWithoutCall = 2
maxPromptTokens = 12
maxResponseTokens = 1300
agentTimeoutMs = 14
verifyTimeoutMs = 15
cpus = 1.5
memoryBytes = 16777216
pids = 17
diskBytes = 1048576
`);
    const run = runOf(protocol);
    expect(run).toMatchObject({
      run: { id: "e1", seed: 9, mode: "evaluation" },
      policy: { checkpoint: "/policy", history: "strip", lateSystem: "keep", thinking: "off" },
      tasks: { index: "/index" },
      rollout: {
        harness: "mini",
        slots: 3,
        warm: 3,
        temperature: 0.5,
        maxTokensPerTurn: 77,
        maxTurns: 11,
        maxTurnsWithoutCall: 2,
        maxPromptTokens: 12,
        maxResponseTokens: 1300,
        agentTimeoutMs: 14,
        verifyTimeoutMs: 15,
        limits: { cpus: 1.5, memoryBytes: 16_777_216, pids: 17, diskBytes: 1_048_576 },
        instruction: "{instruction} ({tests})",
        network: "closed",
        shownTests: "copy",
        maxRetries: 1,
      },
      trainer: { steps: 0 },
      evaluation: { attempts: 20, protocol },
    });
    expect(run.warmStart).toBeUndefined();
  });

  it("is recorded with what was left to a default", async () => {
    const { evaluation } = runOf(await read("attempts = 1\n"));
    expect(evaluation.protocol).toMatchObject({ network: "as-task", shownTests: "none", graders: [] });
    expect(evaluation.protocol!.limits.maxTurns).toBeGreaterThan(0);
  });

  it.each([
    ["attempts", ""],
    ["attempts", "attempts = 0\n"],
    ["limits.agentTimeoutMs", "attempts = 1\nlimits = { agentTimeoutMs = 2147483648 }\n"],
    ["sampling.temperatur", "attempts = 1\nsampling = { temperatur = 1 }\n"],
    ["prompt.instruction", 'attempts = 1\nprompt = { instruction = "do it" }\n'],
    ["prompt.instruction", 'attempts = 1\nprompt = { instruction = "{instruction} {tests}" }\n'],
  ])("is refused by %s: %j", async (field, text) => {
    const error = await read(text).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(MortiseError);
    expect((error as MortiseError).detail.field).toContain(field);
  });

  it("that no run can follow is refused by what does not go together", async () => {
    const protocol = await read("attempts = 1\nlimits = { maxResponseTokens = 10 }\n");
    expect(() => runOf(protocol)).toThrow("rollout.maxTokensPerTurn is above rollout.maxResponseTokens");
  });
});

describe("the version a protocol asks for", () => {
  const place = { directory: "/x" };
  const site = (harness: object) =>
    SiteConfig.parse({ nats: { url: "nats://x" }, identity: place, state: place, tasks: place, harness });
  const asked = (version?: string) =>
    runOf(EvaluationProtocol.parse({ schema: 1, name: "p", attempts: 1, harness: { version } }));

  it("is the one of the site's harness, or the evaluation does not start", () => {
    const own = site({ mini: { ...place, argv: ["x"], version: "3" } });
    expect(() => assertHarnessVersion(own, asked("3"))).not.toThrow();
    expect(() => assertHarnessVersion(own, asked())).not.toThrow();
    expect(() => assertHarnessVersion(own, asked("4"))).toThrow("harness mini of the site is 3");
    expect(() => assertHarnessVersion(site({ mini: { adapter: "codex" } }), asked("0"))).toThrow(
      "harness.version",
    );
  });
});
