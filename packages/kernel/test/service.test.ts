import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { KV_BUCKETS, SandboxService } from "@mortise/contracts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type NatsFixture, startNats } from "../../testkit/src/index.js";
import { type Bus, connectBus } from "../src/bus/bus.js";
import { ensureTopology } from "../src/bus/topology.js";
import { createLog } from "../src/log.js";
import { rpcClient } from "../src/rpc/client.js";
import { findServices, watchServices } from "../src/service/presence.js";
import type { ServicePresence } from "../src/service/types.js";
import { until } from "./bus-fixture.js";

const PROBE = join(import.meta.dirname, "probe-service.mjs");

let nats: NatsFixture;
let bus: Bus;
let directory: string;
let site: string;
let run: string;

beforeAll(async () => {
  nats = await startNats({ withUsers: true });
  const { user, password } = nats.identity("admin");
  const log = createLog({ service: "test", level: "silent" });
  bus = await connectBus({ url: nats.url, user, password, name: "test", log });
  await ensureTopology(bus, { kv: KV_BUCKETS });
  directory = await mkdtemp(join(tmpdir(), "mortise-service-"));
  await writeFile(join(directory, "verifier.json"), JSON.stringify(nats.identity("verifier")), {
    mode: 0o600,
  });
  site = join(directory, "site.toml");
  run = join(directory, "run.toml");
  await writeFile(site, siteToml());
  await writeFile(run, `[run]\nid = "r1"\n[policy]\ncheckpoint = "/nowhere"\n`);
});
afterAll(async () => {
  await bus?.close();
  await nats?.stop();
  await rm(directory, { recursive: true, force: true });
});

function siteToml(): string {
  return `
    nats.url = "${nats.url}"
    identity.directory = "${directory}"
    state.directory = "${join(directory, "state")}"
    tasks.directory = "${directory}"
  `;
}

interface Probe {
  readonly child: ChildProcess;
  readonly lines: Record<string, unknown>[];
  readonly stderr: () => string;
  readonly exit: Promise<number | null>;
}

function start(args: string[], environment: Record<string, string> = {}): Probe {
  const child = spawn(process.execPath, [PROBE, ...args], { env: { ...process.env, ...environment } });
  const lines: Record<string, unknown>[] = [];
  let stderr = "";
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(JSON.parse(line)));
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const exit = once(child, "exit").then(([code]) => code as number | null);
  return { child, lines, stderr: () => stderr, exit };
}

async function ready(probe: Probe): Promise<void> {
  await until(() => probe.lines.some((line) => line.ready === true) || probe.child.exitCode !== null);
  expect(probe.stderr()).toBe("");
  expect(probe.child.exitCode).toBeNull();
}

async function instance(name: string): Promise<ServicePresence> {
  return (await findServices(bus, "verifier")).find((found) => found.instance === name)!;
}

function rpc(presence: ServicePresence) {
  return rpcClient(SandboxService, presence.rpcAddress, { bearer: nats.identity("verifier").bearer });
}

test("starts, is found, answers, shows itself, drains and leaves nothing", async () => {
  const changes: string[][] = [];
  const watching = await watchServices(bus, "verifier", (live) =>
    changes.push(live.map((found) => found.instance)),
  );
  const args = ["--site", site, "--run", run, "--instance", "one", "--set", "verifier.concurrency=7"];
  const probe = start([...args, "--set", "run.id=r2"]);
  await ready(probe);
  const presence = await instance("one");
  expect(presence).toMatchObject({ service: "verifier", pid: probe.child.pid, facts: { colour: "blue" } });

  const client = rpc(presence);
  expect((await client.getSandboxStatus({})).backend).toBe("7 r2");
  client.close();

  const get = async (path: string) => {
    const response = await fetch(`http://${presence.httpAddress}${path}`);
    return { status: response.status, body: await response.text() };
  };
  expect(await get("/healthz")).toMatchObject({ status: 200 });
  expect(await get("/readyz")).toMatchObject({ status: 200 });
  expect(await get("/nothing")).toMatchObject({ status: 404 });
  expect((await get("/metrics")).body).toContain(
    'mortise_verifier_stage_cpu_seconds_total{stage="probe"} 0.012',
  );
  const cpu = JSON.parse((await get("/cpu")).body);
  expect(cpu).toMatchObject({ computeMs: 5, stages: { probe: 12 } });
  expect(cpu.busyMs).toBeGreaterThan(0);

  probe.child.kill("SIGTERM");
  probe.child.kill("SIGTERM");
  expect(await probe.exit).toBe(0);
  expect(probe.lines).toContainEqual(expect.objectContaining({ event: "probe.drained", isAborted: true }));
  expect(await findServices(bus, "verifier")).toEqual([]);
  await until(() => changes.at(-1)?.length === 0);
  expect(changes[0]).toEqual(["one"]);
  await watching.stop();
});

test("secrets are in none of its lines", async () => {
  const probe = start(["--site", site, "--instance", "quiet", "--set", "telemetry.logLevel=debug"]);
  await ready(probe);
  probe.child.kill("SIGINT");
  expect(await probe.exit).toBe(0);
  const { password, bearer } = nats.identity("verifier");
  const output = JSON.stringify(probe.lines) + probe.stderr();
  expect(output).not.toContain(password);
  expect(output).not.toContain(bearer);
});

test("a fatal error inside ends it with 1", async () => {
  const probe = start(["--site", site, "--instance", "failing"]);
  await ready(probe);
  const client = rpc(await instance("failing"));
  await expect(client.cancelTrial({})).rejects.toMatchObject({ disposition: "retry" });
  client.close();
  expect(await probe.exit).toBe(1);
  expect(probe.lines).toContainEqual(
    expect.objectContaining({ level: "fatal", err: expect.objectContaining({ message: "told to fail" }) }),
  );
});

test.each([
  ["no site file", () => [], "MORTISE_OPERATOR_USAGE", "--site is missing"],
  ["an unknown flag", () => ["--sight", "x"], "MORTISE_OPERATOR_USAGE", "--sight"],
  [
    "an unknown key",
    () => ["--site", site, "--set", "verifier.concurency=1"],
    "MORTISE_CONFIG_UNKNOWN_KEY",
    "concurrency",
  ],
  [
    "an impossible value",
    () => ["--site", site, "--set", "rpc.port=70000"],
    "MORTISE_CONFIG_INVALID",
    "rpc.port",
  ],
  ["a missing file", () => ["--site", "/absent.toml"], "MORTISE_CONFIG_UNREADABLE", "/absent.toml"],
  [
    "no identity",
    () => ["--site", site, "--set", "identity.directory=/absent"],
    "MORTISE_CONFIG_UNREADABLE",
    "identity",
  ],
  [
    "a state directory that cannot be made",
    () => ["--site", site, "--set", `state.directory=${site}/state`],
    "MORTISE_OPERATOR_FILES",
    "site.toml/state",
  ],
  [
    "an address that is none",
    () => ["--site", site, "--set", "nats.url=:::"],
    "MORTISE_CONFIG_INVALID",
    "nats.url",
  ],
])("%s: exit code 2, with code and fix", async (_name, args, code, detail) => {
  const probe = start(args());
  expect(await probe.exit).toBe(2);
  expect(probe.stderr()).toContain(`${code}: `);
  expect(probe.stderr()).toContain(detail);
  expect(probe.stderr()).toContain("  fix: ");
  expect(probe.lines).toEqual([]);
});

test("a service of a run refuses to start without one", async () => {
  const probe = start(["--site", site], { PROBE_NEEDS_RUN: "1" });
  expect(await probe.exit).toBe(2);
  expect(probe.stderr()).toContain("--run is missing");
});

test("asked to stop while it still waits to start, it ends as asked", async () => {
  const probe = start(["--site", site, "--instance", "standby"], { PROBE_WAITS: "1" });
  await until(() => probe.lines.some((line) => line.event === "probe.waiting"));
  probe.child.kill("SIGTERM");
  expect(await probe.exit).toBe(0);
  expect(probe.stderr()).toBe("");
});

test("refused credentials: exit code 2, and no word of them", async () => {
  const other = await mkdtemp(join(tmpdir(), "mortise-identity-"));
  const wrong = { ...nats.identity("verifier"), password: "wrong-and-hidden" };
  await writeFile(join(other, "verifier.json"), JSON.stringify(wrong), { mode: 0o600 });
  const probe = start(["--site", site, "--set", `identity.directory=${other}`]);
  expect(await probe.exit).toBe(2);
  expect(probe.stderr()).toContain("MORTISE_TRANSPORT_DENIED");
  expect(probe.stderr()).not.toContain("hidden");
  await rm(other, { recursive: true });
});

test("what a service cannot start with, because of what it was given, is the operator's: exit code 2", async () => {
  const probe = start(["--site", site], { PROBE_REFUSES: "MORTISE_POLICY_CHECKPOINT" });
  expect(await probe.exit).toBe(2);
  expect(probe.stderr()).toContain("MORTISE_POLICY_CHECKPOINT");
  const ours = start(["--site", site], { PROBE_REFUSES: "MORTISE_TRAINER_COMPUTE" });
  expect(await ours.exit).toBe(1);
});

test("an occupied port: exit code 2, with the field", async () => {
  const squatter = createServer().listen(0, "127.0.0.1");
  await once(squatter, "listening");
  const { port } = squatter.address() as AddressInfo;
  const probe = start(["--site", site, "--set", `http.port=${port}`]);
  expect(await probe.exit).toBe(2);
  expect(probe.stderr()).toMatch(/MORTISE_OPERATOR_PORT_IN_USE: .*http\.port/);
  squatter.close();
});

test("no server: exit code 1, and the address without credentials", async () => {
  const probe = start(["--site", site, "--set", "nats.url=nats://a:hidden@127.0.0.1:1"]);
  expect(await probe.exit).toBe(1);
  expect(probe.stderr()).toContain("MORTISE_TRANSPORT_UNAVAILABLE");
  expect(probe.stderr()).not.toContain("hidden");
});
