/**
 * Trials of a real manager whose Docker engine is elsewhere, in a network of its own: what a sandbox there can reach is
 * reached through the manager or not at all. Sealed there, forked, proved closed, graded; and what a crash leaves.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Content, TerminationReason } from "@mortise/contracts";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { OWNER_LABEL } from "../../src/backend/docker/engine.js";
import { decodePatch } from "../../src/patch/codec.js";
import { inlineOf, ManagerWorld } from "../manager-world.js";
import { BROKEN, layoutHolds, layoutWithRepository, REPAIRED, writeTask } from "../task-images.js";
import { RemoteEngine, whyNoEngine } from "./remote-engine.js";

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });
const absent = whyNoEngine();
if (absent !== undefined) test.skip(`trials at an engine elsewhere: ${absent}`, () => undefined);

describe.skipIf(absent !== undefined)("trials at an engine elsewhere", () => {
  const base = mkdtempSync(path.join(tmpdir(), "mortise-remote-trials-"));
  const tasks = path.join(base, "tasks");
  let engine: RemoteEngine;
  let world: ManagerWorld;
  let image: string;

  beforeAll(async () => {
    engine = await RemoteEngine.start({ hasOwnNetwork: true });
    mkdirSync(tasks);
    image = layoutWithRepository(path.join(base, "build"));
    const { host, tls } = engine.settings;
    world = await ManagerWorld.start({
      directory: path.join(base, "manager"),
      tasks,
      backend: "docker",
      sandbox: `docker = { host = "${host}", tls = { ca = "${tls!.ca}", cert = "${tls!.cert}", key = "${tls!.key}" } }`,
    });
  });
  afterEach(() => world.model.reset());
  afterAll(async () => {
    await world?.stop();
    const left = await leftThere();
    await engine?.stop();
    rmSync(base, { recursive: true, force: true });
    expect(left).toEqual({ containers: 0, volumes: 0 });
  });

  const leftThere = async () => {
    const filters = { label: [OWNER_LABEL] };
    return {
      containers: (await engine.docker.listContainers({ all: true, filters })).length,
      volumes: ((await engine.docker.listVolumes({ filters })).Volumes ?? []).length,
    };
  };
  const toml = () =>
    `schema_version = "1.4"\n[environment]\ndocker_image = "oci:${image}"\nmemory_mb = 256\nstorage_mb = 32\n`;
  const task = () => writeTask(tasks, "inside", toml());
  async function stored(content: Content | undefined): Promise<object> {
    if (content?.place.case !== "object") return JSON.parse(Buffer.from(inlineOf(content)).toString());
    const blobs = await world.bus.objects("blobs");
    return JSON.parse(Buffer.from((await blobs.get(content.place.value))!).toString());
  }

  test("are sealed there, run closed but for their model here, and their change is graded", async () => {
    expect(layoutHolds(image, "refs/heads/later")).toBe(true);
    world.model.reply = { write: { "src/add.cjs": REPAIRED } };
    const { trial } = await world.started({ task: task(), setupTimeoutMs: 170_000 });
    const end = await world.ended(trial);
    expect(end).toMatchObject({ termination: TerminationReason.COMPLETED, patchEntries: 1 });
    const { body, authorization } = world.model.requests[0]!;
    expect(authorization).toContain(`secret-of-${trial}`);
    expect(body).toMatchObject({ cwd: "/testbed", setting: "of-the-image", hasTests: false });
    expect(body.files).toContain(".git/HEAD");
    expect(body.files).not.toContain(".git/refs/heads/later");
    const patch = await decodePatch(inlineOf(end.patch));
    expect(patch.entries.map(({ path: file }) => file)).toEqual(["src/add.cjs"]);
    const { proof } = await world.report(trial, "ended");
    expect(await stored(proof?.seal)).toMatchObject({
      format: "mortise-seal/1",
      history: { state: "hidden" },
      search: { isClean: true, nHits: 0 },
    });
    const network = (await stored(proof?.network)) as {
      isClosed: boolean;
      probes: { name: string; observed: string }[];
    };
    expect(network.isClosed).toBe(true);
    const reached = network.probes.filter(({ observed }) => observed === "reachable");
    expect(reached.map(({ name }) => name)).toEqual(["model endpoint"]);
    // The probes listen on the engine's host, not on this one.
    expect(network.probes.map(({ name }) => name)).toContain(`host port at ${engine.host}`);
    const grade = (request: object) => world.grade({ trial, task: task(), ...request });
    expect(await grade({ patch: end.patch! })).toBe("passed");
    expect(await grade({})).toBe("failed");
  });

  test("with an answer in their image do not run", async () => {
    const leaky = writeTask(tasks, "leaky", toml(), {
      "solution/gold.patch": `--- a/src/add.cjs\n+++ b/src/add.cjs\n@@ -0,0 +1 @@\n+${BROKEN}`,
    });
    const trial = await world.launch({ task: leaky, setupTimeoutMs: 170_000 });
    const { fact } = await world.report(trial, "failed", "prepared");
    expect(fact).toMatchObject({ case: "failed", value: { code: "MORTISE_SANDBOX_SEAL_ANSWER" } });
  });

  test("of a manager that is killed leave nothing once it is back, and are reported lost once", async () => {
    const { trial } = await world.started({ task: task(), modelAddress: await unanswered() });
    await expect.poll(async () => (await leftThere()).containers).toBeGreaterThan(1);
    await world.killManager();
    // The helper ends with the connection of its manager.
    const helpers = () =>
      engine.docker.listContainers({ all: true, filters: { label: ["io.mortise.helper"] } });
    await expect.poll(helpers).toEqual([]);
    await world.startManager();
    const { fact } = await world.report(trial, "failed", "ended");
    expect(fact).toMatchObject({
      case: "failed",
      value: { termination: TerminationReason.SANDBOX_LOST },
    });
    expect(await leftThere()).toEqual({ containers: 1, volumes: 1 });
  });

  /** A model that takes requests and never answers. */
  async function unanswered(): Promise<string> {
    const server = net.createServer((socket) => socket.resume().on("error", () => undefined));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `127.0.0.1:${(server.address() as net.AddressInfo).port}`;
  }
  const servers: net.Server[] = [];
  afterAll(() => {
    for (const server of servers) server.close();
  });
});
