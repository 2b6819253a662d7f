/** Owns what the bus tests share: a bus on a real nats-server with one stream and one durable. */
import { type ConsumerDefinition, DeadLetterSchema, type StreamDefinition } from "@mortise/contracts";
import type { NatsFixture } from "../../testkit/src/index.js";
import { type Bus, connectBus } from "../src/bus/bus.js";
import { ensureTopology } from "../src/bus/topology.js";
import { createLog } from "../src/log.js";

export const MIB = 1024 * 1024;

export function stream(name: string, over: Partial<StreamDefinition> = {}): StreamDefinition {
  return {
    name,
    subjects: [`${name.toLowerCase()}.>`],
    retention: "limits",
    maxBytes: 64 * MIB,
    dedupeMs: 60_000,
    compression: "none",
    message: "Note",
    purpose: "test",
    ...over,
  };
}

export function durable(of: string, over: Partial<ConsumerDefinition> = {}): ConsumerDefinition {
  return {
    stream: of,
    durable: "worker",
    filter: `${of.toLowerCase()}.>`,
    ackWaitMs: 30_000,
    maxDeliver: 3,
    maxAckPending: 100,
    purpose: "test",
    ...over,
  };
}

export const DEAD_LETTERS = stream("DLQ", { subjects: ["mortise.v1.dlq.>"] });

export function openBus(nats: NatsFixture, name = "test"): Promise<Bus> {
  const log = createLog({ service: "test", level: process.env.TEST_LOG ?? "silent" });
  return connectBus({ url: nats.url, user: "admin", password: "x", name, log });
}

export async function withWork(
  bus: Bus,
  name: string,
  over: Partial<ConsumerDefinition> = {},
): Promise<void> {
  const work = stream(name, { retention: "workqueue" });
  await ensureTopology(bus, { streams: [work, DEAD_LETTERS], consumers: [durable(name, over)] });
}

/** Waits for a condition that an event outside the test brings about; the test's own limit ends a wait in vain. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}

export async function deadLetter(bus: Bus, of: string) {
  let found = await bus.last("DLQ", `mortise.v1.dlq.${of}`, DeadLetterSchema);
  await until(async () => {
    found ??= await bus.last("DLQ", `mortise.v1.dlq.${of}`, DeadLetterSchema);
    return found !== undefined;
  });
  return found!.message;
}

export async function messagesIn(bus: Bus, name: string): Promise<number> {
  return (await bus.manager.streams.info(name)).state.messages;
}
