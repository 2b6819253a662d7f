/** The proxy as its own process: starts from files, survives kill -9, ends cleanly on SIGTERM. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { call } from "./http-client.js";
import { openSession, ProxyFixture, RUN } from "./proxy-fixture.js";
import { PROCESS_TEST_MS, ProxySite } from "./proxy-process.js";

vi.setConfig({ testTimeout: PROCESS_TEST_MS });

let fixture: ProxyFixture;
let site: ProxySite;

beforeAll(async () => {
  fixture = await ProxyFixture.create({ maxTokensPerTurn: 8 });
  await fixture.publishWeights(0);
  site = await ProxySite.create(fixture);
});
afterAll(async () => {
  await site.stop();
  await fixture.stop();
});

test("killed and started again: the token still works, the journal is complete, the seal is exact", async () => {
  const first = await site.start();
  const token = await openSession(first, "k0");
  const body = { messages: [{ role: "user", content: "fix" }] };
  expect((await call(first.modelAddress, { token, body }).done).status).toBe(200);
  await first.kill();

  const second = await site.start();
  const other = { messages: [{ role: "user", content: "other" }] };
  const answer = await call(second.modelAddress, { token, body: other }).done;
  expect(answer.status).toBe(200);
  const { seal } = await second.rpc.sealSession({ run: RUN, trial: "k0" });
  const turns = await fixture.turns("k0");
  expect(seal!.turns.map((turn) => turn.turn)).toEqual(["k0-t0", "k0-t1"]);
  expect(Number(seal!.sampledTokens)).toBe(turns.reduce((sum, turn) => sum + turn.sampledIds.length / 4, 0));
  expect(await second.end()).toBe(0);
});
