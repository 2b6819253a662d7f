/** A real sandbox-manager on a real NATS server, its sandboxes pods: a trial from launch to a graded change. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { TerminationReason } from "@mortise/contracts";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { decodePatch } from "../../services/sandbox-manager/dist/patch/codec.js";
import { inlineOf, ManagerWorld } from "../../services/sandbox-manager/test/manager-world.js";

const setup = inject("kubernetes");

describe.skipIf(setup.absent !== undefined)("a sandbox-manager whose sandboxes are pods", () => {
  const directory = mkdtempSync(path.join(tmpdir(), "mortise-kubernetes-trial-"));
  let world: ManagerWorld;
  beforeAll(async () => {
    const sandbox = `memoryBytes = 268435456
[sandbox.kubernetes]
kubeconfig = "${setup.kubeconfig}"
context = "manager"
helperImage = "${setup.images!.helper}"
hostImage = "${setup.images!.host}"
requestShare = 0.1`;
    world = await ManagerWorld.start({ directory, backend: "kubernetes", sandbox });
  });
  afterAll(async () => {
    await world?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test("a harness solves the task through the model endpoint, and its change is graded in a fresh pod", async () => {
    world.model.reply = { write: { "src/add.cjs": "exports.add = (a, b) => a + b;\n" } };
    const { trial } = await world.started({ agentTimeoutMs: 60_000 });
    const end = await world.ended(trial);
    expect(end).toMatchObject({ termination: TerminationReason.COMPLETED, exitCode: 0, patchEntries: 1 });
    expect(world.model.requests[0]).toMatchObject({
      authorization: `Bearer secret-of-${trial}`,
      body: { instruction: "Make add return the sum.\n", hasTests: false },
    });
    const { proof, backend, insecure } = await world.report(trial, "ended");
    expect({ backend, insecure }).toEqual({ backend: "kubernetes", insecure: false });
    expect(proof).toMatchObject({ reachable: "model", network: { sha256: expect.any(String) } });
    const patch = await decodePatch(inlineOf(end.patch));
    expect(patch.entries.map((entry) => [entry.kind, entry.path])).toEqual([["file", "src/add.cjs"]]);
    const graded = await world.runOnce({ patch: end.patch! });
    expect(graded).toMatchObject({ failureCode: "", exitCode: 0 });
    expect(JSON.parse(Buffer.from(graded.stdout).toString()).status).toBe("passed");
    expect(await world.grade()).toBe("failed");
  });

  test("how a run ends is told apart", async () => {
    const script = (code: string, timeoutMs = 30_000) =>
      world.runOnce({ argv: ["node", "-e", code], timeoutMs });
    expect(await script("process.exit(7)")).toMatchObject({ failureCode: "", exitCode: 7 });
    expect(await script("for(;;);", 2000)).toMatchObject({ failureCode: "", timedOut: true });
    expect(await script("for(const a=[];;)a.push(Buffer.alloc(4e6,1))")).toMatchObject({ outOfMemory: true });
  });
});
