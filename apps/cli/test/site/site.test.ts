/**
 * A site from nothing to taken down, by the built command line with real services and sandboxes: tasks and harness of
 * one's own, runs after one another, an interrupt, a killed service, a killed owner. The policy plays a script, or is
 * the embedded engine with random weights. MORTISE_SITE_BACKEND names the backend; the best this machine has when absent.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mergeTables, type Table } from "@mortise/kernel";
import { parse, stringify } from "smol-toml";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { provisionSandboxRuntime } from "../../src/provision/runc.js";
import { projectPaths } from "../../src/site/project-paths.js";
import { mortise, mountsBelow, processesNaming, resultOf, said, start } from "./mortise-command.js";
import { type OwnProject, stuckScriptText, writeOwnProject } from "./own-project.js";

const SHARED = ["archiver", "proxy", "sandbox-manager", "verifier"];
const LONG_MS = 240_000;

describe("a site of one's own", { timeout: LONG_MS }, () => {
  let directory: string;
  let own: OwnProject;
  let site: string;
  let runFile: string;
  let initFlags: string[];

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "mortise-own-site-"));
    const backend =
      process.env.MORTISE_SITE_BACKEND ??
      (await provisionSandboxRuntime({ cacheDirectory: projectPaths().cache })).backend;
    own = await writeOwnProject(directory, backend === "process" ? "results" : "reward");
    site = join(directory, "site/site.toml");
    runFile = join(directory, "site/run.toml");
    initFlags = [
      ...["site", "init", join(directory, "site"), "--tasks", own.tasks, "--harness", own.harness],
      ...["--checkpoint", own.checkpoint, "--engine", own.script, "--backend", backend, "--json"],
    ];
  });
  afterAll(async () => {
    await mortise(["site", "down", "--site", site]);
    rmSync(directory, { recursive: true, force: true });
  });

  /** A run file as `site init` wrote it, with other values. */
  const runWith = (id: string, changes: Table): string => {
    const file = join(directory, `${id}.toml`);
    const small = {
      run: { id },
      rollout: { groupSize: 2, slots: 2, warm: 2, maxTurns: 4 },
      trainer: { steps: 0 },
      evaluation: { attempts: 2, after: false },
    };
    writeFileSync(file, stringify(mergeTables(parse(readFileSync(runFile, "utf8")), small, changes)));
    return file;
  };
  const run = (file: string) => start(["run", "--site", site, "--run", file, "--json"]);
  const status = async (id: string) => resultOf(await mortise(["status", id, "--site", site, "--json"]));
  const siteStatus = async () => resultOf(await mortise(["site", "status", "--site", site, "--json"]));

  test("is written from what it was given, and keeps what is there", async () => {
    const prepared = resultOf(await mortise(initFlags));
    expect(prepared.files.map(({ state }: { state: string }) => state)).toEqual(Array(4).fill("written"));
    expect(prepared.checked).toContain("harness my-agent");
    expect(readdirSync(own.tasks).sort()).toEqual(["median-even", "slugify-spaces"]);
    for (const name of ["site.toml", "run.toml", "nats.conf", "identity/proxy.json"])
      expect(statSync(join(directory, "site", name)).mode & 0o777, name).toBe(0o600);

    const before = readFileSync(site, "utf8");
    const again = resultOf(await mortise(initFlags));
    expect(again.files.every(({ state }: { state: string }) => state === "kept")).toBe(true);
    expect(readFileSync(site, "utf8")).toBe(before);
  });

  test("is down before it is up, and a run says so", async () => {
    expect(await siteStatus()).toMatchObject({ state: "down" });
    const refused = await run(runFile).ended;
    expect(refused.status).toBe(2);
    expect(resultOf(refused).error).toMatchObject({ code: "MORTISE_OPERATOR_SITE_DOWN", field: "nats.url" });
    for (const command of [["status"], ["sandbox", "list"]]) {
      const asked = await mortise([...command, "first", "--site", site, "--json"]);
      expect(asked.status, command.join(" ")).toBe(2);
      expect(resultOf(asked).error).toMatchObject({ code: "MORTISE_OPERATOR_SITE_DOWN" });
    }
  });

  test("comes up once", async () => {
    const up = await mortise(["site", "up", "--detach", "--site", site, "--json"]);
    expect(up.status, up.stderr).toBe(0);
    const unknown = await mortise(["status", "nobody", "--site", site, "--json"]);
    expect(resultOf(unknown).error).toMatchObject({ code: "MORTISE_OPERATOR_RUN_UNKNOWN", field: "runId" });
    const now = await siteStatus();
    expect(now).toMatchObject({ state: "up", absent: [], runs: [] });
    expect(now.services.map(({ service }: { service: string }) => service).sort()).toEqual(SHARED);
    for (const flags of [[], ["--detach"]]) {
      const second = await mortise(["site", "up", ...flags, "--site", site, "--json"]);
      expect(second.status).toBe(2);
      expect(resultOf(second).error).toMatchObject({ code: "MORTISE_OPERATOR_SITE_UP", field: "--site" });
    }
    expect(await siteStatus()).toMatchObject({ state: "up", owner: { pid: now.owner.pid } });
  });

  test("trains on the tasks: verdicts are on the bus and a step is committed", async () => {
    const checked = await mortise(["check", "--site", site, "--run", runFile, "--json"]);
    expect(resultOf(checked).checked).toContain("tasks: 2 for training, 2 for evaluation");
    const ended = await run(runWith("trains", { trainer: { steps: 1 } })).ended;
    expect(ended.status, ended.stderr).toBe(0);
    const summary = resultOf(ended);
    // Two attempts and two groups of two, and every second trial of a task repairs it.
    expect(summary).toMatchObject({ steps: 1, trials: 6, tokens: { unconsumed: 0 } });
    expect(summary.tokens.trained).toBeGreaterThan(0);
    const { verdicts } = await status("trains");
    expect(verdicts.resolved).toBeGreaterThanOrEqual(2);
    expect(verdicts.unresolved).toBeGreaterThanOrEqual(2);
    expect(verdicts.resolved + verdicts.unresolved).toBe(6);
  });

  test("takes another run after it, with the embedded engine", async () => {
    const changes = { engine: { kind: "embedded" }, rollout: { maxTokensPerTurn: 16 } };
    const file = runWith("embedded", changes);
    const table = parse(readFileSync(file, "utf8"));
    writeFileSync(file, stringify({ ...table, engine: { kind: "embedded" } }));
    const ended = await run(file).ended;
    expect(ended.status, ended.stderr).toBe(0);
    expect(resultOf(ended)).toMatchObject({ runId: "embedded", trials: 2, solveRate: { before: 0 } });
  });

  test("a run that was interrupted goes on, and counts nothing twice", async () => {
    const stuck = join(directory, "stuck.jsonl");
    writeFileSync(stuck, stuckScriptText());
    const engine = { kind: "scripted", file: stuck };
    const file = runWith("resumed", { engine, rollout: { slots: 1 }, evaluation: { attempts: 4 } });
    const first = run(file);
    await expect
      .poll(async () => (await status("resumed").catch(() => undefined))?.trials ?? 0, { timeout: LONG_MS })
      .toBeGreaterThanOrEqual(1);
    first.child.kill("SIGINT");
    expect((await first.ended).status).toBe(130);
    expect((await status("resumed")).phase).not.toBe("FINISHED");
    const ended = await run(file).ended;
    expect(ended.status, ended.stderr).toBe(0);
    const { verdicts, phase } = await status("resumed");
    expect(phase).toBe("FINISHED");
    expect(verdicts.resolved + verdicts.unresolved).toBe(4);
  });

  test("a killed service is started again", async () => {
    const pidOf = async () =>
      (await siteStatus()).services
        .filter(({ service }: { service: string }) => service === "verifier")
        .map(({ pid }: { pid: number }) => pid);
    const [killed] = await pidOf();
    process.kill(killed, "SIGKILL");
    // The dead one stays listed until its presence expires.
    await expect
      .poll(async () => (await pidOf()).filter((pid: number) => pid !== killed).length, {
        timeout: LONG_MS,
      })
      .toBe(1);
  });

  test("a killed owner is told from a live one, and another start takes over", async () => {
    const { owner } = await siteStatus();
    process.kill(owner.pid, "SIGKILL");
    await expect.poll(async () => (await siteStatus()).owner.isRunning, { timeout: LONG_MS }).toBe(false);
    const down = resultOf(await mortise(["site", "down", "--site", site, "--json"]));
    expect(down).toMatchObject({ was: "dead" });
    const up = await mortise(["site", "up", "--detach", "--site", site, "--json"]);
    expect(up.status, up.stderr).toBe(0);
    expect((await siteStatus()).owner).toMatchObject({ isRunning: true });
    expect((await status("resumed")).phase).toBe("FINISHED");
  });

  test("goes down and leaves nothing", async () => {
    const down = await mortise(["site", "down", "--site", site, "--json"]);
    expect(resultOf(down)).toMatchObject({ was: "up", state: "down" });
    expect(await siteStatus()).toMatchObject({ state: "down", services: [] });
    await expect.poll(() => processesNaming(directory), { timeout: LONG_MS }).toEqual([]);
    expect(mountsBelow(directory)).toEqual([]);
    expect(resultOf(await mortise(["site", "down", "--site", site, "--json"]))).toMatchObject({
      was: "down",
    });
  });

  test("stays up in the foreground until it is interrupted", async () => {
    const up = start(["site", "up", "--site", site, "--json"]);
    await said(up, "model API");
    up.child.kill("SIGINT");
    const ended = await up.ended;
    expect(ended.status, ended.stderr).toBe(0);
    expect(resultOf(ended)).toMatchObject({ state: "down" });
    expect(await siteStatus()).toMatchObject({ state: "down" });
  });
});
