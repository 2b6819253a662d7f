/** A run without a trainer: sampled from its checkpoint as it is, whatever anybody publishes. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { filter, type WeightsReceipt, WeightsRecordSchema } from "@mortise/contracts";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LoadedWeights } from "../src/engine/types.js";
import { call } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";
import { ScriptedEngine } from "./scripted-engine.js";

/** Refuses the first weights it is given, as a server does that is still starting. */
class StartingEngine extends ScriptedEngine {
  readonly given: (LoadedWeights & { readonly bytes: number })[] = [];

  override async loadWeights(weights: LoadedWeights & { readonly safetensors: Uint8Array }): Promise<void> {
    const { version, sha256, safetensors } = weights;
    this.given.push({ version, sha256, bytes: safetensors.byteLength });
    if (this.given.length === 1) throw new Error("not yet");
    return super.loadWeights(weights);
  }
}

let fixture: ProxyFixture;
let replica: Replica;
const engine = new StartingEngine({ id: "pinned" });

beforeAll(async () => {
  fixture = await ProxyFixture.create({ mode: "evaluation" });
  replica = await fixture.start(() => engine);
});
afterAll(() => fixture.stop());

async function receipts(): Promise<WeightsReceipt[]> {
  const found: WeightsReceipt[] = [];
  const following = await fixture.admin.follow({
    stream: "WEIGHTS",
    filters: [filter.weights(RUN)],
    from: "first",
    schema: WeightsRecordSchema,
    onMessage: ({ record }) => {
      if (record.case === "receipt") found.push(record.value);
    },
  });
  await following.caughtUp;
  await following.stop();
  return found;
}

/** Policy versions of the spans of a trial's first turn. */
async function versionsOf(trial: string, token: string): Promise<bigint[]> {
  engine.play({ ids: fixture.ids("ok") });
  const body = { messages: [{ role: "user", content: "fix" }] };
  const { status } = await call(replica.modelAddress, { token, body }).done;
  expect(status).toBe(200);
  const [turn] = await fixture.turns(trial);
  return turn!.spans.map(({ policyVersion }) => policyVersion);
}

test("the checkpoint's weights are version 0, tried until the engine has them, and acknowledged", async () => {
  const token = await openSession(replica, "t1", { evaluation: true });
  const sha256 = createHash("sha256")
    .update(readFileSync(join(fixture.checkpoint, "model.safetensors")))
    .digest("hex");
  const { bytes } = engine.given[0]!;
  expect(engine.given).toEqual([0, 0].map((version) => ({ version, sha256, bytes })));
  await expect.poll(receipts).toMatchObject([{ run: RUN, version: 0n, sha256, engine: "pinned" }]);

  expect(await versionsOf("t1", token)).toEqual([0n]);
});

test("weights somebody publishes are not taken", async () => {
  await fixture.publishWeights(1);
  const token = await openSession(replica, "t2", { evaluation: true });
  expect(await versionsOf("t2", token)).toEqual([0n]);
  expect(engine.given).toHaveLength(2);
  expect(await receipts()).toHaveLength(1);
});
