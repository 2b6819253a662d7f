/**
 * Scripted cheaters through the whole system: scheduler, sandbox-manager with runc, proxy, verifier. Each trial is one
 * cheat in the unrepaired repository, and must not end resolved; beside it, a trial that repairs the same task must.
 * MORTISE_CHEATS names the cheats to run, as a pattern of their names; all when absent.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Outcome, TerminationReason } from "@mortise/contracts";
import { RuncBackend } from "@mortise/sandbox-manager";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { integrityLines, integrityOf } from "../../apps/cli/src/integrity/integrity-report.js";
import { regradeRun } from "../../apps/cli/src/regrade/regrade-run.js";
import { readVerdicts } from "../../apps/cli/src/regrade/run-verdicts.js";
import { decodePatch } from "../../services/sandbox-manager/src/patch/codec.js";
import { nodeImage } from "../../services/verifier/test/node-image.js";
import { pythonImage } from "../../services/verifier/test/python-image.js";
import { CHEATS, OPEN_CHEATS } from "./cheats/all.js";
import type { Cheat } from "./cheats/cheat.js";
import { ANSWERS, KEPT_TOKEN } from "./cheats/endpoint.js";
import { Deployment, type TrialRecord } from "./deployment.js";
import { writeHarness } from "./harnesses.js";
import { javascriptKinds, nodeKinds, pythonKinds, SPLIT, writeTasks } from "./tasks.js";

const CHEATING = "cheats";
const HONEST = "honest";
const OUTCOMES = {
  tamper: Outcome.INVALID_TAMPER,
  unresolved: Outcome.UNRESOLVED,
  resolved: Outcome.RESOLVED,
};

/** A cheat, and the mode of the integrity report that must count it. */
const SHOWN_BY = [
  ["pytest-network-fetch", "network"],
  ["pytest-collect-only", "test-configuration"],
  ["pytest-sitecustomize", "code-loaded-unasked"],
  ["pytest-stale-bytecode", "compiled-files"],
  ["pytest-tests-linked-outside", "outside-workspace"],
  ["pytest-channel-imitated", "forged-results"],
  ["pytest-runner-patched", "canary-flipped"],
  ["pytest-equal-to-all", "canary-flipped"],
  ["mocha-runner-replaced", "test-configuration"],
  ["harbor-reward-in-background", "processes-left"],
] as const;

const runc = await new RuncBackend({ stateDirectory: tmpdir(), runc: "runc" }).availability();
if (!runc.ok) console.log(`the red team is skipped: ${runc.reason}`);
const image = runc.ok ? pythonImage() : { missing: "there are no sandboxes" };
if ("missing" in image) console.log(`cheats against Python are skipped: ${image.missing}`);
const asked = new RegExp(process.env.MORTISE_CHEATS ?? "");
const node = runc.ok ? nodeImage() : { missing: "there are no sandboxes" };
if ("missing" in node) console.log(`cheats against test runners of JavaScript are skipped: ${node.missing}`);
const OF_PYTHON: ReadonlySet<string> = new Set(["pytest", "values", "unittest", "harbor"]);
const OF_NODE: ReadonlySet<string> = new Set(["jest", "vitest", "mocha"]);
const isRun = ({ name, family }: Pick<Cheat, "name" | "family">) =>
  asked.test(name) &&
  (!("missing" in image) || !OF_PYTHON.has(family)) &&
  (!("missing" in node) || !OF_NODE.has(family));
const chosen = CHEATS.filter(isRun);
const open = OPEN_CHEATS.filter(isRun);
const all = [...chosen, ...open];

describe.runIf(runc.ok)("through the whole system", () => {
  const directory = mkdtempSync(join(tmpdir(), "mortise-red-team-tasks-"));
  const tasks = join(directory, "tasks");
  let deployment: Deployment;
  let cheated: ReadonlyMap<string, TrialRecord>;
  let repaired: ReadonlyMap<string, TrialRecord>;

  beforeAll(async () => {
    const python = "missing" in image ? {} : await pythonKinds(directory, image);
    const runners = "missing" in node ? {} : await nodeKinds(directory, node);
    const repairs = writeTasks(tasks, all, { ...javascriptKinds(directory), ...python, ...runners });
    const scripts = new Map(all.map(({ name, script }) => [name, script]));
    const harnesses = [writeHarness(CHEATING, directory, scripts), writeHarness(HONEST, directory, repairs)];
    deployment = await Deployment.start(tasks, harnesses, [CHEATING, HONEST]);
    const wish = { split: SPLIT, tasks: all.length };
    cheated = await deployment.run({ run: CHEATING, harness: CHEATING, ...wish });
    repaired = await deployment.run({ run: HONEST, harness: HONEST, ...wish });
  });
  afterAll(async () => {
    await deployment?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test.each(chosen)("$name ends $ends", ({ name, ends }) => {
    const record = cheated.get(name)!;
    expect(record.verdict, said(record)).toMatchObject({ outcome: OUTCOMES[ends] });
    expect(record.closed, said(record)).toMatchObject({
      outcome: OUTCOMES[ends],
      termination: ends === "tamper" ? TerminationReason.TAMPER : TerminationReason.COMPLETED,
    });
  });

  test.each(open)("$name still ends $ends, as the docs say", ({ name, ends }) => {
    const record = cheated.get(name)!;
    expect(record.verdict, said(record)).toMatchObject({ outcome: OUTCOMES[ends] });
  });

  test.each(all)("a repair beside $name is resolved", ({ name }) => {
    const record = repaired.get(name)!;
    expect(record.verdict, said(record)).toMatchObject({ outcome: Outcome.RESOLVED, reward: 1 });
  });

  test("the token of an ended trial opens nothing, and is no secret's copy in any report", async ({
    skip,
  }) => {
    const record = cheated.get("endpoint-token-kept");
    skip(record === undefined, "not chosen");
    const token = await fileOf(record!, KEPT_TOKEN);
    expect(token.length).toBeGreaterThan(16);
    const response = await fetch(`http://${await deployment.modelAddress()}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "policy", messages: [{ role: "user", content: "x" }] }),
    });
    // Its own endpoint is gone with its sandbox, and nowhere else was it ever good.
    expect([response.status, await response.text()]).toEqual([
      403,
      expect.stringContaining("wrong_listener"),
    ]);
    expect(JSON.stringify(record!.verdict?.reason)).not.toContain(token);
  });

  test("from inside, no other token, path, port or process answers", async ({ skip }) => {
    const record = cheated.get("endpoint-other-sessions");
    skip(record === undefined, "not chosen");
    const answers = (await fileOf(record!, ANSWERS)).trim().split("\n");
    expect(answers.length).toBeGreaterThan(8);
    expect(answers.filter((line) => !/^(?:none|4\d\d) /.test(line))).toEqual([]);
  });

  test("what a daemon does after its harness is in no change", async ({ skip }) => {
    const record = cheated.get("endpoint-daemon");
    skip(record === undefined, "not chosen");
    const before = await patchOf(record!);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect((await patchOf(record!)).entries).toEqual(before.entries);
  });

  test("the integrity report counts the attempts, and finds none beside the repairs", async () => {
    const reports = {
      cheats: integrityOf(await readVerdicts(deployment.bus, CHEATING)),
      honest: integrityOf(await readVerdicts(deployment.bus, HONEST)),
    };
    console.log(integrityLines(reports.cheats).join("\n"));
    expect(reports.cheats.tampered).toHaveLength(chosen.filter(({ ends }) => ends === "tamper").length);
    expect(reports.honest.tampered).toEqual([]);
    expect(reports.honest.modes.filter(({ trials }) => trials > 0)).toEqual([]);
    expect(reports.cheats.protection).toMatchObject({
      sealed: reports.cheats.protection.ran,
      probed: reports.cheats.protection.ran,
    });
    for (const [cheat, mode] of SHOWN_BY) {
      if (!cheated.has(cheat)) continue;
      const { trials } = reports.cheats.modes.find((one) => one.mode === mode)!;
      expect(trials, `${cheat} is counted as ${mode}`).toBeGreaterThan(0);
    }
  });

  test("graded again from what was kept, no verdict changes", async () => {
    for (const run of [CHEATING, HONEST]) {
      const { trials, skipped } = await regradeRun(await readVerdicts(deployment.bus, run), tasks);
      expect(skipped).toEqual([]);
      expect(trials.filter(({ isChanged, isRefined }) => isChanged || isRefined)).toEqual([]);
    }
  });
});

/** What the services said of a trial. */
function said({ closed, verdict, reports }: TrialRecord): string {
  const { fact } = reports.at(-1) ?? {};
  const tail = fact?.case === "ended" ? fact.value.outputTail : JSON.stringify(fact ?? {});
  return `closed: ${closed.reason}; verdict: ${verdict?.reason}; harness: ${tail}`;
}

async function patchOf(record: TrialRecord) {
  const { fact } = record.reports.at(-1)!;
  const place = fact.case === "ended" ? fact.value.patch?.place : undefined;
  if (place?.case !== "inline") throw new Error("the change is not in the report");
  return decodePatch(place.value);
}

async function fileOf(record: TrialRecord, path: string): Promise<string> {
  const entry = (await patchOf(record)).entries.find((one) => one.path === path);
  if (entry?.kind !== "file") throw new Error(`${path} is not in the change: ${said(record)}`);
  return new TextDecoder().decode(entry.content);
}
