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
import { pythonImage } from "../../services/verifier/test/python-image.js";
import { CHEATS, OPEN_CHEATS } from "./cheats/all.js";
import type { Cheat } from "./cheats/cheat.js";
import { Deployment, type TrialRecord } from "./deployment.js";
import { writeHarness } from "./harnesses.js";
import { javascriptKinds, pythonKinds, SPLIT, writeTasks } from "./tasks.js";

const CHEATING = "cheats";
const HONEST = "honest";
const OUTCOMES = {
  tamper: Outcome.INVALID_TAMPER,
  unresolved: Outcome.UNRESOLVED,
  resolved: Outcome.RESOLVED,
  infra: Outcome.INVALID_INFRA,
};

const runc = await new RuncBackend({ stateDirectory: tmpdir(), runc: "runc" }).availability();
if (!runc.ok) console.log(`the red team is skipped: ${runc.reason}`);
const image = runc.ok ? pythonImage() : { missing: "there are no sandboxes" };
if ("missing" in image) console.log(`cheats against Python are skipped: ${image.missing}`);
const asked = new RegExp(process.env.MORTISE_CHEATS ?? "");
const isRun = ({ name, family }: Pick<Cheat, "name" | "family">) =>
  asked.test(name) && (!("missing" in image) || (family !== "pytest" && family !== "harbor"));
const chosen = CHEATS.filter(isRun);
const open = OPEN_CHEATS.filter(isRun);
const all = [...chosen, ...open];

describe.runIf(runc.ok)("through the whole system", () => {
  const directory = mkdtempSync(join(tmpdir(), "mortise-red-team-tasks-"));
  let deployment: Deployment;
  let cheated: ReadonlyMap<string, TrialRecord>;
  let repaired: ReadonlyMap<string, TrialRecord>;

  beforeAll(async () => {
    const tasks = join(directory, "tasks");
    const python = "missing" in image ? {} : await pythonKinds(directory, image);
    const repairs = writeTasks(tasks, all, { ...javascriptKinds(directory), ...python });
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
});

/** What the services said of a trial. */
function said({ closed, verdict, reports }: TrialRecord): string {
  const { fact } = reports.at(-1) ?? {};
  const tail = fact?.case === "ended" ? fact.value.outputTail : JSON.stringify(fact ?? {});
  return `closed: ${closed.reason}; verdict: ${verdict?.reason}; harness: ${tail}`;
}
