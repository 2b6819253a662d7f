/** Hidden tests shown to an agent: it may run and change the copy, and nothing of the copy reaches grading. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { create } from "@bufbuild/protobuf";
import { SandboxOverridesSchema, ShownTests } from "@mortise/contracts";
import type { Task } from "@mortise/tasks";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { RuncBackend } from "../src/backend/runc/backend.js";
import { decodePatch } from "../src/patch/codec.js";
import type { ShelvedTask } from "../src/shelf/tasks.js";
import { wishedOf } from "../src/trial/wishes.js";
import { FIXTURES, inlineOf, ManagerWorld } from "./manager-world.js";

const base = mkdtempSync(path.join(tmpdir(), "mortise-shown-"));
const runc = await new RuncBackend({ stateDirectory: base, runc: "runc" }).availability();
const backends = runc.ok ? ["runc", "process"] : ["process"];
if (!runc.ok) console.log(`tests of shown tests on runc skipped: ${runc.reason}`);
afterAll(() => rmSync(base, { recursive: true, force: true }));

const FORGED = 'console.log(JSON.stringify({ name: "adds", status: "passed" }));\n';
const REPAIR = "exports.add = (a, b) => a + b;\n";
const overrides = { shownTests: ShownTests.COPY, instruction: "{instruction} See {tests}." };

describe.each(backends)("shown tests on %s", (backend) => {
  let world: ManagerWorld;
  beforeAll(async () => {
    world = await ManagerWorld.start({ directory: path.join(base, backend), backend });
  });
  afterEach(() => world.model.reset());
  afterAll(() => world?.stop());

  /** Runs one agent that writes these files, and grades what it leaves. */
  async function tried(write: Record<string, string>) {
    world.model.reply = { write };
    const { trial } = await world.started({ overrides });
    const end = await world.ended(trial);
    const { entries } = await decodePatch(inlineOf(end.patch));
    const status = await world.grade({ patch: end.patch! });
    return { trial, end, status, changed: entries.map((entry) => entry.path) };
  }

  test("are in the work tree, are spoken of in the instruction, and are said in the record", async () => {
    const { trial, end, changed, status } = await tried({});
    const { body } = world.model.requests[0]!;
    expect(body.files).toEqual(expect.arrayContaining(["shown-tests/run.cjs", "shown-tests/test.sh"]));
    expect(body.instruction).toMatch(/^Make add return the sum\.\n See \/.*\/shown-tests\.$/);
    expect(body.hasTests).toBe(false);
    const { proof } = await world.report(trial, "ended");
    expect(proof?.notes).toContain("a copy of the hidden tests is shown in shown-tests");
    expect({ changed, status, shown: end.shownTestsChanged }).toEqual({
      changed: [],
      status: "failed",
      shown: 0,
    });
  });

  test("that were edited to pass are not what grades", async () => {
    const { changed, status, end } = await tried({ "shown-tests/run.cjs": FORGED });
    expect({ changed, status }).toEqual({ changed: [], status: "failed" });
    expect(end.shownTestsChanged).toBe(1);
  });

  test("leave an honest repair beside them as it is", async () => {
    const { changed, status, end } = await tried({
      "src/add.cjs": REPAIR,
      "shown-tests/run.cjs": FORGED,
      "shown-tests/notes": "mine",
    });
    expect({ changed, status }).toEqual({ changed: ["src/add.cjs"], status: "passed" });
    expect(end.shownTestsChanged).toBe(2);
  });

  test("are not there in any other run", async () => {
    const { trial } = await world.started();
    const { shownTestsChanged } = await world.ended(trial);
    const { body } = world.model.requests[0]!;
    expect(body.files).not.toContain("shown-tests");
    expect(shownTestsChanged).toBeUndefined();
  });
});

describe("a run's wishes", () => {
  const task = {
    directory: "/t",
    instruction: "say {tests} and $&",
    agent: { network: { mode: "public", allowedHosts: [] } },
    tests: { directory: path.join(FIXTURES, "tasks/add-numbers/tests") },
  } as unknown as Task;
  const shelved = (files: string[]) =>
    ({
      task,
      workdir: "/w",
      workspace: { entries: new Map(files.map((file) => [file, {}])) },
    }) as ShelvedTask;
  const wish = (wishes: object, files: string[] = []) =>
    wishedOf(shelved(files), create(SandboxOverridesSchema, wishes));

  test("leave a task as it is where there are none", () => {
    for (const wished of [wish({}), wishedOf(shelved([]), undefined)])
      expect(wished).toEqual({
        instruction: task.instruction,
        network: task.agent.network,
        shown: undefined,
        notes: [],
      });
  });

  test("wrap the instruction, whose own words are no places", () => {
    const { instruction } = wish({ instruction: "{instruction}! ({tests})" });
    expect(instruction).toBe("say {tests} and $&! (/w/shown-tests)");
  });

  test("close the network of a task that asks for one, and say so", () => {
    expect(wish({ closedNetwork: true })).toMatchObject({
      network: { mode: "no-network", allowedHosts: [] },
      notes: ["the task asks for a network (public); the run closes it"],
    });
  });

  test("do not show tests over something of the task's own, nor the record of an imported task", () => {
    expect(() => wish({ shownTests: ShownTests.COPY }, ["shown-tests/x"])).toThrow(
      "the work tree has shown-tests/x",
    );
    const logged = { ...task, tests: { ...task.tests, expected: { format: "log" } } };
    const all = (one: Task) =>
      [
        ...wishedOf({ ...shelved([]), task: one }, create(SandboxOverridesSchema, overrides)).shown!.keys(),
      ].sort();
    const names = ["shown-tests/expected.json", "shown-tests/run.cjs", "shown-tests/test.sh"];
    expect(all(task)).toEqual(names);
    expect(all(logged as Task)).toEqual(names);
  });
});
