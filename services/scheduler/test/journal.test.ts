import { STREAMS, subject, TrialState, TrialTransitionSchema } from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology, systemClock } from "@mortise/kernel";
import { type NatsFixture, startNats } from "@mortise/testkit";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Journal } from "../src/edge/journal.js";

const TRIALS = STREAMS.find(({ name }) => name === "TRIALS")!;
let nats: NatsFixture;
let bus: Bus;

beforeAll(async () => {
  nats = await startNats();
  const log = createLog({ service: "test", level: "silent" });
  bus = await connectBus({ url: nats.url, user: "admin", password: "x", name: "test", log });
});
afterAll(async () => {
  await bus.close();
  await nats.stop();
});

function journal(
  fence: number,
  over: { onFatal?: (error: unknown) => void; onStorage?: (isFull: boolean) => void } = {},
) {
  return new Journal({
    bus,
    run: "r1",
    fence: BigInt(fence),
    clock: systemClock,
    signal: new AbortController().signal,
    sequences: new Map(),
    onStorage: over.onStorage ?? (() => {}),
    onFatal: over.onFatal ?? ((error) => expect.unreachable(String(error))),
  });
}

const last = async (trial: string) =>
  (await bus.last("TRIALS", subject.trialState("r1", trial), TrialTransitionSchema))!;

it("stores the transitions of a trial in order, each after the one before", async () => {
  await ensureTopology(bus, { streams: [TRIALS] });
  const log = journal(1);
  log.append({ trial: "a", state: TrialState.LAUNCHED });
  log.append({ trial: "a", state: TrialState.WARM });
  log.append({ trial: "a", state: TrialState.CLOSED });
  await log.settled("a");
  expect((await last("a")).message.state).toBe(TrialState.CLOSED);
});

it("appends after what a scheduler with an older lease wrote late, and stops under a newer one", async () => {
  await ensureTopology(bus, { streams: [TRIALS] });
  const older = journal(3);
  older.append({ trial: "b", state: TrialState.LAUNCHED });
  await older.settled("b");
  const newer = journal(4);
  newer.append({ trial: "b", state: TrialState.LAUNCHED });
  await newer.settled("b");
  expect((await last("b")).message.fence).toBe(4n);
  const fatal = new Promise<unknown>((resolve) => {
    const stale = journal(3, { onFatal: resolve });
    stale.append({ trial: "b", state: TrialState.WARM });
    stale.settled("b").catch(() => {});
  });
  expect(await fatal).toMatchObject({ code: "MORTISE_TRANSPORT_FENCED" });
  expect((await last("b")).message.state).toBe(TrialState.LAUNCHED);
});

it("waits while the stream is full, says so, and loses nothing", async () => {
  await bus.manager.streams.delete("TRIALS");
  await ensureTopology(bus, { streams: [{ ...TRIALS, maxBytes: 1024, compression: "none" }] });
  const storage: boolean[] = [];
  const log = journal(5, { onStorage: (isFull) => storage.push(isFull) });
  const reason = "x".repeat(400);
  for (const trial of ["c", "d", "e", "f"]) log.append({ trial, state: TrialState.LAUNCHED, reason });
  while (storage.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(storage).toEqual([true]);
  await ensureTopology(bus, { streams: [TRIALS] });
  await Promise.all(["c", "d", "e", "f"].map((trial) => log.settled(trial)));
  expect(storage).toEqual([true, false]);
  for (const trial of ["c", "d", "e", "f"]) expect((await last(trial)).message.reason).toBe(reason);
});
