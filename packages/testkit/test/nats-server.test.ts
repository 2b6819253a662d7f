import { connectBus, createLog, ensureTopology } from "@mortise/kernel";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type NatsFixture, startNats } from "../src/index.js";

let nats: NatsFixture;

beforeAll(async () => {
  nats = await startNats({ withUsers: true });
});
afterAll(() => nats.stop());

function connect(user: "admin" | "verifier", password = nats.identity(user).password) {
  const log = createLog({ service: "test", level: "silent" });
  return connectBus({ url: nats.url, user, password, name: "test", log });
}

test("serves JetStream to a user it knows", async () => {
  const bus = await connect("admin");
  await ensureTopology(bus, { kv: [{ bucket: "probe", history: 1, ttlMs: 0, key: "", purpose: "" }] });
  const kv = await bus.kv("probe");
  await kv.put("a", Buffer.from("1"));
  expect(Buffer.from((await kv.get("a"))!.value).toString()).toBe("1");
  await bus.close();
});

test("refuses a wrong password with the code for denied access", async () => {
  await expect(connect("verifier", "wrong")).rejects.toMatchObject({ code: "MORTISE_TRANSPORT_DENIED" });
});

test("a service cannot forge what belongs to another", async () => {
  const bus = await connect("verifier");
  const publish = bus.publisher.publish({
    subject: "mortise.v1.capture.run.trial",
    bytes: new Uint8Array(),
    messageId: "forged",
  });
  await expect(publish).rejects.toMatchObject({ code: "MORTISE_TRANSPORT_DENIED" });
  await bus.close();
});
