/**
 * Trials of a real sandbox-manager whose agent runs in a real agent runtime, over both protocols: what comes back is
 * what a local sandbox gives; what is refused, lost, cancelled and taken up again.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type SandboxReport, TerminationReason } from "@mortise/contracts";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { inlineOf, type ManagerWorld, RUN } from "../../../services/sandbox-manager/test/manager-world.js";
import { eventually, SHORT_LIMIT_MS } from "./patience.js";
import { isRoot } from "./places.js";
import { ALLOWED, failureOf, startWorld } from "./remote-world.js";
import { REPAIRED } from "./requests.js";
import { RuntimeProcess } from "./runtime-process.js";

const PROTOCOLS = ["a2a", "agentcore"] as const;

let scratch: string;
let runtime: RuntimeProcess;
let world: ManagerWorld;

beforeAll(async () => {
  if (!isRoot) return;
  scratch = mkdtempSync(path.join(tmpdir(), "mortise-remote-"));
  runtime = new RuntimeProcess({
    directory: path.join(scratch, "runtime"),
    place: "auto",
    limits: "maxInvocations = 4",
  });
  await runtime.start();
  const { url, tokenFile } = runtime;
  const wrong = path.join(scratch, "runtime/wrong");
  writeFileSync(wrong, "not-the-token", { mode: 0o600 });
  world = await startWorld(path.join(scratch, "manager"), [
    ...PROTOCOLS.map((protocol) => ({ name: protocol, protocol, url, tokenFile })),
    ...PROTOCOLS.map((protocol) => ({ name: `${protocol}-denied`, protocol, url, tokenFile: wrong })),
    ...PROTOCOLS.map((protocol) => ({
      name: `${protocol}-short`,
      protocol,
      url,
      tokenFile,
      more: "maxAnswerBytes = 65536",
    })),
    { name: "nowhere", protocol: "agentcore", url: "http://127.0.0.1:9", tokenFile },
  ]);
});
afterEach(() => world?.model.reset());
afterAll(async () => {
  await world?.stop();
  await runtime?.stop();
  if (scratch !== undefined) rmSync(scratch, { recursive: true, force: true });
});

function endOf({ fact }: SandboxReport) {
  if (fact.case !== "ended") throw new Error(JSON.stringify(fact));
  return fact.value;
}

describe.runIf(isRoot).each(PROTOCOLS)("over %s", (protocol) => {
  test("a trial ends with the change a local sandbox gives, and the record says what is not proved", async () => {
    world.model.reply = { write: { "src/add.cjs": REPAIRED }, say: "repaired" };
    const local = await world.started();
    const localEnd = await world.ended(local.trial);
    const { trial } = await world.started({ harness: protocol, ...ALLOWED });
    const end = await world.ended(trial);
    expect(end).toMatchObject({
      termination: TerminationReason.COMPLETED,
      exitCode: 0,
      patchEntries: 1,
      harnessVersion: "7",
      outputTail: "repaired",
    });
    expect(Buffer.from(inlineOf(end.patch))).toEqual(Buffer.from(inlineOf(localEnd.patch)));
    expect(world.model.requests.at(-1)!.authorization).toBe(`Bearer secret-of-${trial}`);
    const { proof } = await world.report(trial, "ended");
    expect(proof).toMatchObject({
      reachable: expect.stringContaining("unknown"),
      remote: { protocol, url: runtime.url, claims: { size: expect.anything() } },
    });
    expect(proof!.unproven.map((line) => line.split(":")[0])).toEqual(
      expect.arrayContaining(["egress", "history and answers"]),
    );
    expect(proof!.network).toBeUndefined();
    expect(proof!.remote!.agentMs).toBeGreaterThan(0);
    expect(world.manager.output + runtime.output).not.toContain(`secret-of-${trial}`);
  });

  test("a run that demands proofs gets no such trial", async () => {
    const trial = await world.launch({ harness: protocol });
    expect(failureOf(await world.report(trial, "failed", "prepared"))).toMatchObject({
      code: "MORTISE_HARNESS_REMOTE_UNPROVEN",
      reason: expect.stringContaining("rollout.unproven"),
    });
  });

  test("an agent that takes too long is ended there, and its change counts", async () => {
    world.model.reply = { write: { "half.txt": "half" }, hang: true };
    const { trial } = await world.started({ harness: protocol, ...ALLOWED, agentTimeoutMs: SHORT_LIMIT_MS });
    expect(await world.ended(trial)).toMatchObject({
      termination: TerminationReason.AGENT_TIMEOUT,
      patchEntries: 1,
    });
  });

  test("a cancelled trial ends its agent there", async () => {
    world.model.reply = { hang: true };
    const { trial } = await world.started({ harness: protocol, ...ALLOWED });
    await eventually(() => world.model.requests.length).toBe(1);
    expect((await runtime.ping()).status).toBe("HealthyBusy");
    await world.client.cancelTrial({ run: RUN, trial });
    expect((await world.ended(trial)).termination).toBe(TerminationReason.CANCELLED);
    await eventually(async () => (await runtime.ping()).status).toBe("Healthy");
  });

  test("a killed manager takes its agent up again; it is run once and reported once", async () => {
    world.model.reply = { write: { "src/add.cjs": REPAIRED }, hang: true };
    const { trial, lease } = await world.started({
      harness: protocol,
      ...ALLOWED,
      agentTimeoutMs: SHORT_LIMIT_MS,
    });
    await eventually(() => world.model.requests.length).toBe(1);
    await world.killManager();
    expect((await runtime.ping()).status).toBe("HealthyBusy");
    await world.startManager();
    expect(world.manager.output).toContain('"trial.taken-up"');
    // As the bus does when nobody acknowledged it in time.
    await world.launch({ trial, harness: protocol, ...ALLOWED });
    const report = await world.report(trial, "ended", "failed");
    expect(report.lease).toBe(lease);
    expect(endOf(report)).toMatchObject({ termination: TerminationReason.AGENT_TIMEOUT, patchEntries: 1 });
    expect(world.model.requests).toHaveLength(1);
    expect(world.reportsOf(trial).map(({ fact }) => fact.case)).toEqual(["prepared", "ended"]);
  });

  test("a killed runtime is a lost trial, once, and nothing is run again", async () => {
    world.model.reply = { hang: true };
    const { trial } = await world.started({ harness: protocol, ...ALLOWED });
    await eventually(() => world.model.requests.length).toBe(1);
    await runtime.stop("SIGKILL");
    await runtime.start();
    expect(failureOf(await world.report(trial, "failed", "ended"))).toMatchObject({
      code: "MORTISE_HARNESS_REMOTE_LOST",
    });
    expect(world.model.requests).toHaveLength(1);
    expect(world.reportsOf(trial).map(({ fact }) => fact.case)).toEqual(["prepared", "failed"]);
    expect((await runtime.ping()).status).toBe("Healthy");
  });

  test("an answer that is too large is refused with the key that allows it", async () => {
    world.model.reply = { write: { "big.txt": "x".repeat(200_000) } };
    const { trial } = await world.started({ harness: `${protocol}-short`, ...ALLOWED });
    expect(failureOf(await world.report(trial, "failed", "ended"))).toMatchObject({
      code: "MORTISE_HARNESS_REMOTE_ANSWER",
      reason: expect.stringContaining("more than 65536 bytes"),
    });
  });

  test("a wrong token is a failure that says so", async () => {
    const trial = await world.launch({ harness: `${protocol}-denied`, ...ALLOWED });
    const report = await world.report(trial, "failed", "prepared");
    // Health and card are anyone's: the agent stage is where it shows.
    if (report.fact.case === "prepared")
      await world.client.startAgent({ run: RUN, trial, lease: report.lease });
    expect(failureOf(await world.report(trial, "failed"))).toMatchObject({
      code: "MORTISE_HARNESS_REMOTE_DENIED",
      reason: expect.stringContaining("401"),
    });
    expect(world.model.requests).toHaveLength(0);
  });
});

describe.runIf(isRoot)("before anything runs", () => {
  test("a runtime that cannot be reached fails the setup", async () => {
    const trial = await world.launch({ harness: "nowhere", ...ALLOWED });
    expect(failureOf(await world.report(trial, "failed", "prepared"))).toMatchObject({
      code: "MORTISE_HARNESS_REMOTE_REFUSED",
      reason: expect.stringContaining("http://127.0.0.1:9"),
    });
  });

  test("what a remote runtime cannot be given is refused, not left out", async () => {
    const overrides = { mounts: [{ name: "data", target: "/data" }] };
    const trial = await world.launch({ harness: "a2a", ...ALLOWED, overrides });
    expect(failureOf(await world.report(trial, "failed", "prepared"))).toMatchObject({
      code: "MORTISE_SANDBOX_SETUP",
      reason: expect.stringContaining("rollout.mounts"),
    });
  });
});
