/** Several engines as one: who gets which session, and who gets none. */
import { createLog, ManualClock } from "@mortise/kernel";
import { beforeEach, describe, expect, test } from "vitest";
import { EnginePool } from "../src/engine/engine-pool.js";
import { ScriptedEngine } from "../src/engine/scripted/scripted-engine.js";
import type { EngineStatus, LoadedWeights } from "../src/engine/types.js";
import { engineRequest } from "./engine-request.js";

/** A scripted engine that can be away, or refuse weights. */
class Member extends ScriptedEngine {
  isAway = false;
  refuses = false;

  override status(): EngineStatus {
    return { ...super.status(), isServing: !this.isAway };
  }

  override async loadWeights(weights: LoadedWeights): Promise<void> {
    if (this.refuses) throw new Error("no space");
    await super.loadWeights(weights);
  }
}

const member = (id: string, choose = () => ({ ids: [10] })) => new Member({ id, choose });
const weights = (version: number) => ({ version, sha256: `${version}`, safetensors: new Uint8Array() });

let clock: ManualClock;
let members: [Member, Member, Member];
let pool: EnginePool;

beforeEach(async () => {
  clock = new ManualClock();
  members = [member("e0"), member("e1"), member("e2")];
  pool = new EnginePool({
    id: "pool",
    members,
    clock,
    log: createLog({ service: "proxy", level: "silent" }),
  });
  await pool.loadWeights(weights(0));
});

const engineOf = async (affinity: string) => (await pool.generate(engineRequest({ affinity }))).engine;

describe("which engine", () => {
  test("sessions spread over the engines, and each stays where it began", async () => {
    const first = [];
    for (const session of ["a", "b", "c", "d", "e", "f"]) first.push(await engineOf(session));
    expect([...first].sort()).toEqual(["e0", "e0", "e1", "e1", "e2", "e2"]);
    const again = [];
    for (const session of ["f", "e", "d", "c", "b", "a"]) again.push(await engineOf(session));
    expect(again.reverse()).toEqual(first);
  });

  test("a new session goes to the engine with the fewest turns", async () => {
    for (const busy of [members[0], members[2]]) busy.play({ ids: [1], holdAfter: 0 });
    const held = [pool.generate(engineRequest({ affinity: "x" })), members[2].generate(engineRequest())];
    for (const session of ["a", "b", "c"]) expect(await engineOf(session)).toBe("e1");
    for (const { held } of [members[0], members[2]]) held[0]!.release();
    await Promise.all(held);
  });

  test("sessions of an engine that is away go elsewhere; without any engine turns fail, to be tried again", async () => {
    const home = await engineOf("a");
    members.find(({ id }) => id === home)!.isAway = true;
    const other = await engineOf("a");
    expect(other).not.toBe(home);
    members.find(({ id }) => id === home)!.isAway = false;
    expect(await engineOf("a")).toBe(other);
    for (const one of members) one.isAway = true;
    expect(pool.status().isServing).toBe(false);
    await expect(engineOf("a")).rejects.toMatchObject({
      code: "MORTISE_PROVIDER_ENGINE",
      disposition: "retry",
    });
  });
});

describe("weights", () => {
  test("an engine that has none is given no turn until it takes them", async () => {
    const late = member("late");
    late.refuses = true;
    pool = new EnginePool({
      id: "pool",
      members: [late, members[1]],
      clock,
      log: createLog({ service: "proxy", level: "silent" }),
    });
    await pool.loadWeights(weights(1));
    expect(pool.status()).toMatchObject({ isServing: true, loaded: { version: 1 } });
    for (const session of ["a", "b", "c"]) expect(await engineOf(session)).toBe("e1");
    late.refuses = false;
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(5000);
    await expect.poll(() => late.status().loaded?.version).toBe(1);
    expect(await engineOf("d")).toBe("late");
  });

  test("newer weights end the asking for older ones", async () => {
    members[0].refuses = true;
    await pool.loadWeights(weights(1));
    await new Promise((resolve) => setImmediate(resolve));
    members[0].refuses = false;
    await pool.loadWeights(weights(2));
    clock.advance(60_000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(members.map((one) => one.status().loaded?.version)).toEqual([2, 2, 2]);
  });

  test("when no engine takes them the first reason is told, and turns go on under the older ones", async () => {
    for (const one of members) one.refuses = true;
    await expect(pool.loadWeights(weights(1))).rejects.toThrow(/no space/);
    expect(pool.status().loaded).toMatchObject({ version: 0 });
    expect(await engineOf("a")).toBeDefined();
    await pool.close();
  });
});

test("the pool can do what all its engines can", () => {
  const log = createLog({ service: "proxy", level: "silent" });
  const make = (capabilities: object) => new ScriptedEngine({ capabilities });
  const both = new EnginePool({
    id: "pool",
    members: [
      make({ maxTokens: 100, routedExperts: true }),
      make({ maxTokens: 80, logProbabilities: "raw", weightVersions: false }),
    ],
    clock,
    log,
  });
  expect(both.capabilities).toMatchObject({
    maxTokens: 80,
    logProbabilities: "raw",
    routedExperts: false,
    weightVersions: false,
    weightUpdates: true,
  });
});
