/**
 * The permission rows of the deployment against a real server: each service can do on the bus what the flow of a
 * run asks of it, with the kernel's own calls, and nothing that belongs to another.
 */
import {
  type BusUser,
  CaptureRecordSchema,
  CONSUMERS,
  GroupRecordSchema,
  KV_BUCKETS,
  LaunchWorkSchema,
  LEASE_TTL_MS,
  MetricsRecordSchema,
  OBJECT_BUCKETS,
  runConsumers,
  STREAMS,
  subject,
  TrialTransitionSchema,
  VerdictSchema,
  VerifyWorkSchema,
  WeightsRecordSchema,
} from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology, Lease } from "@mortise/kernel";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type NatsFixture, startNats } from "../src/index.js";

const RUN = "r1";
const bytes = new TextEncoder().encode("content");

let nats: NatsFixture;
const buses = new Map<BusUser, Bus>();

async function as(user: BusUser): Promise<Bus> {
  const known = buses.get(user);
  if (known !== undefined) return known;
  const { password } = nats.identity(user);
  const log = createLog({ service: "test", level: "silent" });
  const bus = await connectBus({ url: nats.url, user, password, name: user, log });
  buses.set(user, bus);
  return bus;
}

beforeAll(async () => {
  nats = await startNats({ withUsers: true });
  const consumers = [...CONSUMERS, ...runConsumers(RUN)];
  await ensureTopology(await as("admin"), {
    streams: STREAMS,
    consumers,
    kv: KV_BUCKETS,
    objects: OBJECT_BUCKETS,
  });
});
afterAll(async () => {
  await Promise.all([...buses.values()].map((bus) => bus.close()));
  await nats?.stop();
});

async function canFollow(user: BusUser, stream: string): Promise<void> {
  const bus = await as(user);
  const follow = { stream, filters: ["mortise.>"], from: "first" as const, schema: CaptureRecordSchema };
  const following = await bus.follow({ ...follow, onMessage: () => {} });
  await following.caughtUp;
  await following.stop();
}

async function canWatch(user: BusUser, bucket: string): Promise<void> {
  const kv = await (await as(user)).kv(bucket);
  const watching = await kv.watch(">", () => {});
  await watching.caughtUp;
  await watching.stop();
  await kv.entries();
  await kv.get("absent");
}

async function canStore(user: BusUser, bucket: string, reader: BusUser): Promise<void> {
  const objects = await (await as(user)).objects(bucket);
  await objects.put(`of/${user}`, bytes);
  expect(await objects.has(`of/${user}`)).toBe(true);
  expect(await (await (await as(reader)).objects(bucket)).get(`of/${user}`)).toEqual(bytes);
}

async function handleOne(
  user: BusUser,
  stream: string,
  durable: string,
  schema: typeof LaunchWorkSchema,
): Promise<void> {
  const handled = Promise.withResolvers<void>();
  const handle = async () => handled.resolve();
  const consuming = await (await as(user)).consume({ stream, durable, schema, concurrency: 2, handle });
  await handled.promise;
  await consuming.stop();
}

const denied = { code: "MORTISE_TRANSPORT_DENIED" };

test.each(["proxy", "sandbox-manager", "verifier", "scheduler", "trainer", "archiver"] as const)(
  "%s announces itself and finds others",
  async (user) => {
    const presence = await (await as(user)).kv("presence");
    await presence.put(`${user}.1`, bytes);
    await canWatch(user, "presence");
    await presence.delete(`${user}.1`);
  },
);

test("the observer reads everything and writes nothing", async () => {
  for (const { name } of STREAMS) if (name !== "WORK") await canFollow("observer", name);
  for (const { bucket } of KV_BUCKETS) await canWatch("observer", bucket);
  const kv = await (await as("observer")).kv("runs");
  await expect(kv.put("r1", bytes)).rejects.toMatchObject(denied);
});

describe("in the flow of a run", () => {
  test("the scheduler moves trials and asks for work", async () => {
    const bus = await as("scheduler");
    const publish = { dedupeId: "1", message: { run: RUN } };
    const state = subject.trialState(RUN, "t1");
    await bus.publish({
      ...publish,
      subject: state,
      schema: TrialTransitionSchema,
      expectLastSubjectSequence: 0,
    });
    await bus.publish({
      ...publish,
      subject: subject.launch(RUN, "t1"),
      schema: LaunchWorkSchema,
      dedupeId: "2",
    });
    await bus.publish({
      ...publish,
      subject: subject.verify(RUN, "t1"),
      schema: VerifyWorkSchema,
      dedupeId: "3",
    });
    await bus.publish({ ...publish, subject: subject.group(RUN, "g1"), schema: GroupRecordSchema });
    await bus.publish({
      subject: subject.phase(RUN),
      schema: MetricsRecordSchema,
      message: {},
      dedupeId: "4",
    });
    expect(await bus.last("TRIALS", state, TrialTransitionSchema)).toBeDefined();
    for (const stream of ["TRIALS", "REWARDS", "GROUPS", "METRICS", "WEIGHTS"])
      await canFollow("scheduler", stream);
    await canWatch("scheduler", "weights");
    await (await bus.kv("runs")).put(RUN, bytes);
    const holder = { holder: "scheduler", ttlMs: LEASE_TTL_MS };
    const lease = await Lease.acquire(await bus.kv("leases"), `${RUN}.scheduler`, holder);
    await lease.release();
    const forged = bus.publish({ ...publish, subject: subject.reward(RUN, "t1"), schema: VerdictSchema });
    await expect(forged).rejects.toMatchObject(denied);
  });

  test("the sandbox-manager takes launches and stores patches", async () => {
    await handleOne("sandbox-manager", "WORK", "launch", LaunchWorkSchema);
    await canStore("sandbox-manager", "blobs", "verifier");
    const bus = await as("sandbox-manager");
    const report = { schema: TrialTransitionSchema, message: { run: RUN }, dedupeId: "5" };
    await bus.publish({ ...report, subject: subject.trialSandbox(RUN, "t1") });
    await expect(bus.publish({ ...report, subject: subject.trialState(RUN, "t1") })).rejects.toMatchObject(
      denied,
    );
  });

  test("the verifier takes verifications and publishes verdicts", async () => {
    await handleOne("verifier", "WORK", "verify", VerifyWorkSchema as never);
    const bus = await as("verifier");
    const reward = subject.reward(RUN, "t1");
    await bus.publish({ subject: reward, schema: VerdictSchema, message: { run: RUN }, dedupeId: "6" });
    expect(await bus.last("REWARDS", reward, VerdictSchema)).toBeDefined();
  });

  test("the proxy journals with compare-and-set, reads weights, acknowledges them", async () => {
    const bus = await as("proxy");
    const capture = { subject: subject.capture(RUN, "t1"), schema: CaptureRecordSchema, message: {} };
    const first = await bus.publish({ ...capture, dedupeId: "t1/1", expectLastSubjectSequence: 0 });
    expect(
      (await bus.publish({ ...capture, dedupeId: "t1/1", expectLastSubjectSequence: 0 })).duplicate,
    ).toBe(true);
    await expect(
      bus.publish({ ...capture, dedupeId: "t1/2", expectLastSubjectSequence: 0 }),
    ).rejects.toMatchObject({
      code: "MORTISE_TRANSPORT_SEQUENCE_CONFLICT",
    });
    await bus.publish({ ...capture, dedupeId: "t1/2", expectLastSubjectSequence: first.sequence });
    await canFollow("proxy", "CAPTURES");
    await canWatch("proxy", "weights");
    const receipt = {
      subject: subject.receipt(RUN, "e1"),
      schema: WeightsRecordSchema,
      message: {},
      dedupeId: "7",
    };
    await bus.publish(receipt);
    await expect((await bus.kv("weights")).put(RUN, bytes)).rejects.toMatchObject(denied);
  });

  test("the trainer consumes groups, publishes weights and steps", async () => {
    await handleOne("trainer", "GROUPS", `${RUN}_trainer`, GroupRecordSchema as never);
    const bus = await as("trainer");
    await canStore("trainer", "weights", "proxy");
    const weights = await bus.kv("weights");
    const revision = await weights.create(RUN, bytes);
    expect(await weights.update(RUN, bytes, revision!)).toBeGreaterThan(revision!);
    await bus.publish({
      subject: subject.weights(RUN, 0),
      schema: WeightsRecordSchema,
      message: {},
      dedupeId: "8",
    });
    await bus.publish({
      subject: subject.step(RUN, 1),
      schema: MetricsRecordSchema,
      message: {},
      dedupeId: "9",
    });
    expect(await bus.at("CAPTURES", 1, CaptureRecordSchema)).toBeDefined();
    const lease = await Lease.acquire(await bus.kv("leases"), `${RUN}.trainer`, {
      holder: "x",
      ttlMs: LEASE_TTL_MS,
    });
    await lease.release();
  });

  test("the archiver reads every record", async () => {
    for (const { name } of STREAMS) if (name !== "WORK") await canFollow("archiver", name);
    await canWatch("archiver", "runs");
    expect(await (await (await as("archiver")).objects("blobs")).has("absent")).toBe(false);
  });
});
