/**
 * Two replicas that serve one session at once: each turn is appended by one of them, the other's harness is told
 * to come again, and what both recorded is one tree that every replica reads alike.
 */
import { TurnTree } from "@mortise/capture";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { call } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";
import { ScriptedEngine } from "./scripted-engine.js";

const ROUNDS = 6;

// Every round is sampled, refused and asked again, which takes their share of a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let fixture: ProxyFixture;
const replicas: Replica[] = [];
const engines: ScriptedEngine[] = [];

beforeAll(async () => {
  fixture = await ProxyFixture.create();
  for (const id of ["one", "two"]) {
    const engine = new ScriptedEngine({ id, choose: () => ({ ids: fixture.ids("done") }) });
    engines.push(engine);
    replicas.push(await fixture.start(() => engine));
  }
  await fixture.publishWeights(0);
});
afterAll(() => fixture.stop());

/** Asks until it is served, as a harness does. Resolves to how often it was told to come again. */
async function insist(replica: Replica, token: string, messages: object[]): Promise<number> {
  for (let refusals = 0; ; refusals++) {
    const { status } = await call(replica.modelAddress, { token, body: { messages } }).done;
    if (status === 200) return refusals;
    expect(status).toBe(503);
  }
}

test("every reply that was delivered is in the journal, once, and the losers were told to retry", async () => {
  const trial = "x0";
  const token = await openSession(replicas[0]!, trial);
  let refusals = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const both = replicas.map((replica, at) =>
      insist(replica, token, [{ role: "user", content: `fix ${round} ${at}` }]),
    );
    for (const one of await Promise.all(both)) refusals += one;
  }
  expect(refusals).toBeGreaterThan(0);
  const turns = await fixture.turns(trial);
  expect(turns).toHaveLength(2 * ROUNDS);
  expect(new Set(turns.map(({ turn }) => turn)).size).toBe(2 * ROUNDS);
  expect(new Set(turns.map(({ engine }) => engine))).toEqual(new Set(["one", "two"]));
  const tree = new TurnTree();
  for (const turn of turns) tree.add(turn);
  const seals = await Promise.all(replicas.map((replica) => replica.rpc.sealSession({ run: RUN, trial })));
  expect(seals[0]).toEqual(seals[1]);
  expect(seals[0]!.seal!.turns).toHaveLength(2 * ROUNDS);
});
