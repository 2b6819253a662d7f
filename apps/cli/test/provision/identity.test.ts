/** A real nats-server with the generated configuration: permissions are a claim about it, not about text. */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { CONSUMERS, KV_BUCKETS, OBJECT_BUCKETS, STREAMS, subject, VerdictSchema } from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology } from "@mortise/kernel";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BUS_USERS, createIdentities, readIdentity, writeIdentities } from "../../src/provision/identity.js";
import { provisionNatsServer } from "../../src/provision/nats-server/provision.js";
import { runPaths } from "../../src/quickstart/run-directory.js";
import { startNatsServer } from "../../src/site/processes/nats-process.js";
import { projectPaths } from "../../src/site/project-paths.js";
import { Supervisor } from "../../src/supervisor/supervisor.js";

const log = createLog({ service: "test", level: "error" });
const buses: Bus[] = [];
let directory: string;
let url: string;
let supervisor: Supervisor;
const identities = createIdentities();

async function connectAs(user: (typeof BUS_USERS)[number]): Promise<Bus> {
  const { user: name, password } = identities.get(user)!;
  const bus = await connectBus({ url, user: name, password, name: "test", log });
  buses.push(bus);
  return bus;
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mortise-identity-"));
  const server = await provisionNatsServer({
    cacheDirectory: projectPaths().cache,
    environment: { PATH: process.env.PATH },
  });
  if (server.kind !== "binary") throw new Error("a binary was asked for");
  const fail = (reason: string) => {
    throw new Error(reason);
  };
  supervisor = new Supervisor({
    onRestart: () => {},
    onGaveUp: (_name, reason) => fail(reason),
    onFault: (error) => fail(String(error)),
  });
  const paths = runPaths(projectPaths(directory), "r1");
  url = await startNatsServer({ supervisor, binary: server.path, paths, identities });
  await ensureTopology(await connectAs("admin"), {
    streams: STREAMS,
    consumers: CONSUMERS,
    kv: KV_BUCKETS,
    objects: OBJECT_BUCKETS,
  });
});
afterAll(async () => {
  await Promise.all(buses.map((bus) => bus.close()));
  await supervisor?.stopInOrder([]);
  await rm(directory, { recursive: true, force: true });
});

const verdict = (run: string) => create(VerdictSchema, { run, trial: "t1" });
const publishVerdict = (bus: Bus, dedupeId: string) =>
  bus.publish({
    subject: subject.reward("r1", "t1"),
    schema: VerdictSchema,
    message: verdict("r1"),
    dedupeId,
  });

describe("identities of a run", () => {
  test("are files that only their owner reads, each with its own password", async () => {
    const place = join(directory, "identity");
    await writeIdentities(place, identities);
    expect((await stat(place)).mode & 0o777).toBe(0o700);
    expect((await stat(join(place, "proxy.json"))).mode & 0o777).toBe(0o600);
    const all = await Promise.all(BUS_USERS.map((user) => readIdentity(place, user)));
    expect(new Set(all.map(({ password }) => password)).size).toBe(BUS_USERS.length);
    expect(new Set(all.map(({ bearer }) => bearer)).size).toBe(1);
    expect(all.every(({ password, bearer }) => password.length >= 32 && bearer.length >= 32)).toBe(true);
  });
  test("nobody is let in without one", async () => {
    const anonymous = connectBus({ url, user: "", password: "", name: "test", log, connectTimeoutMs: 2_000 });
    await expect(anonymous).rejects.toMatchObject({ code: "MORTISE_TRANSPORT_DENIED" });
    const wrong = connectBus({
      url,
      user: "proxy",
      password: "guess",
      name: "test",
      log,
      connectTimeoutMs: 2_000,
    });
    await expect(wrong).rejects.toMatchObject({ code: "MORTISE_TRANSPORT_DENIED" });
  });
  test("the verifier may publish a verdict; a proxy may not forge one", async () => {
    expect(await publishVerdict(await connectAs("verifier"), "v1")).toMatchObject({ sequence: 1 });
    await expect(publishVerdict(await connectAs("proxy"), "v2")).rejects.toMatchObject({
      code: "MORTISE_TRANSPORT_DENIED",
    });
    const { message } = (await (
      await connectAs("observer")
    ).last("REWARDS", subject.reward("r1", "t1"), VerdictSchema))!;
    expect(message.run).toBe("r1");
  });
  test("only the trainer writes the current weights", async () => {
    const weights = async (user: (typeof BUS_USERS)[number]) => (await connectAs(user)).kv("weights");
    expect(await (await weights("trainer")).put("r1", new Uint8Array([1]))).toBeGreaterThan(0);
    await expect((await weights("proxy")).put("r1", new Uint8Array([2]))).rejects.toThrow();
    expect([...(await (await weights("proxy")).get("r1"))!.value]).toEqual([1]);
  });
  test("a killed server comes back on its port with what it had acknowledged", async () => {
    const { pid } = supervisor.status()[0]!;
    process.kill(pid!, "SIGKILL");
    // A connection made before its end is noticed would meet the dying server.
    await expect.poll(() => supervisor.status()[0]).toMatchObject({ restarts: 1, phase: "running" });
    const observer = await connectAs("observer");
    expect((await observer.last("REWARDS", subject.reward("r1", "t1"), VerdictSchema))?.sequence).toBe(1);
  });
});
