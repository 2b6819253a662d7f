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
import { CHEATS } from "./cheats/all.js";
import { Deployment, type TrialRecord } from "./deployment.js";
import { writeHarness } from "./harnesses.js";
import { realmTask, SPLIT, writeTasks } from "./tasks.js";

const CHEATING = "cheats";
const HONEST = "honest";
const OUTCOMES = { tamper: Outcome.INVALID_TAMPER, unresolved: Outcome.UNRESOLVED };

const runc = await new RuncBackend({ stateDirectory: tmpdir(), runc: "runc" }).availability();
if (!runc.ok) console.log(`the red team is skipped: ${runc.reason}`);
const asked = new RegExp(process.env.MORTISE_CHEATS ?? "");
const chosen = CHEATS.filter(({ name }) => asked.test(name));

describe.runIf(runc.ok)("through the whole system", () => {
  const directory = mkdtempSync(join(tmpdir(), "mortise-red-team-tasks-"));
  let deployment: Deployment;
  let cheated: ReadonlyMap<string, TrialRecord>;
  let repaired: ReadonlyMap<string, TrialRecord>;

  beforeAll(async () => {
    const tasks = join(directory, "tasks");
    const repairs = writeTasks(tasks, chosen, { realm: realmTask(directory) });
    const scripts = new Map(chosen.map(({ name, script }) => [name, script]));
    const harnesses = [writeHarness(CHEATING, directory, scripts), writeHarness(HONEST, directory, repairs)];
    deployment = await Deployment.start(tasks, harnesses, [CHEATING, HONEST]);
    const wish = { split: SPLIT, tasks: chosen.length };
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
      termination: TerminationReason.COMPLETED,
    });
  });

  test.each(chosen)("a repair beside $name is resolved", ({ name }) => {
    const record = repaired.get(name)!;
    expect(record.verdict, said(record)).toMatchObject({ outcome: Outcome.RESOLVED, reward: 1 });
  });
});

/** What the services said of a trial. */
function said({ closed, verdict, reports }: TrialRecord): string {
  const { fact } = reports.at(-1) ?? {};
  const tail = fact?.case === "ended" ? fact.value.outputTail : JSON.stringify(fact ?? {});
  return `closed: ${closed.reason}; verdict: ${verdict?.reason}; harness: ${tail}`;
}
