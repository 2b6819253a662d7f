/** The proxy as its own process: starts from files, survives kill -9, ends cleanly on SIGTERM. Uses dist. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { ProxyService } from "@mortise/contracts";
import { findServices, rpcClient } from "@mortise/kernel";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));

let fixture: ProxyFixture;
let directory: string;
const children: ChildProcess[] = [];

beforeAll(async () => {
  fixture = await ProxyFixture.create({ maxTokensPerTurn: 8 });
  await fixture.publishWeights(0);
  directory = await mkdtemp(join(tmpdir(), "mortise-proxy-site-"));
  const identity = JSON.stringify(fixture.nats.identity("proxy"));
  await writeFile(join(directory, "proxy.json"), identity, { mode: 0o600 });
  const tables = [
    `nats.url = "${fixture.nats.url}"`,
    ...["identity", "state", "tasks"].map((name) => `${name}.directory = "${directory}"`),
  ];
  await writeFile(join(directory, "site.toml"), `${tables.join("\n")}\n`);
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await fixture.stop();
  await rm(directory, { recursive: true, force: true });
});

async function startProcess(instance: string) {
  const args = [MAIN, "--site", join(directory, "site.toml"), "--instance", instance];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout! }))
    if (line.includes('"ready":true')) break;
  child.stdout!.resume();
  const found = (await findServices(fixture.admin, "proxy")).find((one) => one.instance === instance)!;
  const rpc = rpcClient(ProxyService, found.rpcAddress, { bearer: fixture.nats.identity("proxy").bearer });
  return { child, replica: { rpc, modelAddress: found.facts.modelAddress! } as Replica };
}

test("killed and started again: the token still works, the journal is complete, the seal is exact", async () => {
  const first = await startProcess("one");
  const token = await openSession(first.replica, "k0");
  const body = { messages: [{ role: "user", content: "fix" }] };
  expect((await call(first.replica.modelAddress, { token, body }).done).status).toBe(200);
  first.child.kill("SIGKILL");
  await once(first.child, "exit");
  first.replica.rpc.close();

  const second = await startProcess("two");
  const other = { messages: [{ role: "user", content: "other" }] };
  const answer = await call(second.replica.modelAddress, { token, body: other }).done;
  expect(answer.status).toBe(200);
  const { seal } = await second.replica.rpc.sealSession({ run: RUN, trial: "k0" });
  const turns = await fixture.turns("k0");
  expect(seal!.turns.map((turn) => turn.turn)).toEqual(["k0-t0", "k0-t1"]);
  expect(Number(seal!.sampledTokens)).toBe(turns.reduce((sum, turn) => sum + turn.sampledIds.length / 4, 0));

  second.child.kill("SIGTERM");
  const [code] = await once(second.child, "exit");
  expect(code).toBe(0);
  second.replica.rpc.close();
});
