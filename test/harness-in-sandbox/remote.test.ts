/**
 * Harnesses solve a real task in a remote agent runtime: scheduler, sandbox-manager, proxy, verifier and trainer run as in
 * a deployment, the runtime is a process of its own that is given an image, a model URL and a token, and the verifier
 * grades the change it hands back. Over A2A in runc, over the AgentCore contract in a flattened root.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type HarnessSettings, Outcome, TerminationReason } from "@mortise/contracts";
import { ensureRuntime } from "@mortise/harness";
import { harnessFolder, harnessNamed } from "@mortise/harnesses";
import { RuncBackend } from "@mortise/sandbox-manager";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RuntimeProcess } from "../../apps/agent-runtime/test/runtime-process.js";
import { Deployment } from "./deployment.js";
import { scriptLines } from "./script.js";
import { ON_HOST_IMAGE, solvingCalls, WITHOUT_LIBRARY, writeTasks } from "./task.js";

const HARNESSES = ["mini", "pi"] as const;
const SPLITS = { "host-image": ON_HOST_IMAGE, "own-image": WITHOUT_LIBRARY } as const;
const WAYS = [
  { protocol: "a2a", place: "runc" },
  { protocol: "agentcore", place: "chroot" },
] as const;

type Way = (typeof WAYS)[number];
const harnessAt = ({ place }: Way, name: string) => `${name}-${place}`;

const availability = await new RuncBackend({ stateDirectory: tmpdir(), runc: "runc" }).availability();
if (!availability.ok) console.log(`remote harnesses skipped: ${availability.reason}`);

describe.runIf(availability.ok)("in a remote runtime", () => {
  const directory = mkdtempSync(join(tmpdir(), "mortise-remote-task-"));
  const unobtainable = new Map<string, string>();
  const runtimes = new Map<string, RuntimeProcess>();
  let task: Awaited<ReturnType<typeof writeTasks>>;
  let deployment: Deployment;

  beforeAll(async () => {
    task = await writeTasks(join(directory, "tasks"), directory);
    for (const name of HARNESSES) {
      const options = { folder: harnessFolder(name), onProgress: console.log };
      await ensureRuntime(harnessNamed(name), options).catch((error: Error) =>
        unobtainable.set(name, error.message),
      );
    }
    const site: Record<string, HarnessSettings> = {};
    for (const way of WAYS) {
      const runtime = new RuntimeProcess({
        directory: join(directory, way.place),
        place: way.place,
        archives: directory,
        more: '[harness.pi]\nadapter = "pi"\ncontextTokens = 300000\nmaxOutputTokens = 4096',
      });
      await runtime.start();
      runtimes.set(way.place, runtime);
      for (const name of HARNESSES) {
        const { url, tokenFile } = runtime;
        site[harnessAt(way, name)] = { remote: { protocol: way.protocol, url, tokenFile, harness: name } };
      }
    }
    const names = WAYS.flatMap((way) => HARNESSES.map((name) => harnessAt(way, name)));
    const runs = names.flatMap((name) => Object.keys(SPLITS).map((split) => `${name}-${split}`));
    deployment = await Deployment.start({
      tasks: join(directory, "tasks"),
      harness: site,
      runs,
      backend: "runc",
    });
  });
  afterAll(async () => {
    await deployment?.stop();
    for (const runtime of runtimes.values()) await runtime.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  describe.each(WAYS)("over $protocol in $place", (way) => {
    const cases = HARNESSES.flatMap((name) =>
      (Object.keys(SPLITS) as (keyof typeof SPLITS)[]).map((split) => ({ name, split })),
    );
    test.each(cases)(
      "$name solves the task of the $split, and the verifier says so",
      async ({ name, split }) => {
        if (unobtainable.has(name)) throw new Error(unobtainable.get(name));
        const adapter = harnessNamed(name);
        const vocabulary = adapter.tools(adapter.wireApis[0]);
        const harness = harnessAt(way, name);
        const record = await deployment.runTrial({
          run: `${harness}-${split}`,
          harness,
          split: SPLITS[split],
          script: scriptLines(solvingCalls(task, vocabulary), vocabulary),
          rollout: { unproven: "allow" },
        });
        const { fact, proof } = record.reports.at(-1)!;
        if (fact.case !== "ended") throw new Error(`the sandbox reported ${JSON.stringify(fact)}`);
        expect(fact.value, fact.value.outputTail).toMatchObject({
          termination: TerminationReason.COMPLETED,
          harnessVersion: adapter.version,
          patchEntries: 1,
        });
        expect(fact.value.transcriptFiles > 0).toBe(adapter.transcript.length > 0);
        expect(proof?.unproven.length).toBeGreaterThan(0);
        expect(proof?.remote?.protocol).toBe(way.protocol);
        expect(record.verdict).toMatchObject({ outcome: Outcome.RESOLVED, reward: 1 });
        expect(record).toMatchObject({ solved: 1, invalid: 0 });
        const { prepareMs, agentMs, collectMs } = proof!.remote!;
        console.log(`${harness}, ${split}: prepare ${prepareMs}, agent ${agentMs}, collect ${collectMs} ms`);
      },
    );
  });
});
