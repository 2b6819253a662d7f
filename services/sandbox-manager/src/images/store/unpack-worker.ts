/**
 * Owns a thread that unpacks layers, one after the other. File system calls block it and nobody else.
 * Does not fetch: bytes arrive as messages, a bounded number ahead.
 */
import { parentPort } from "node:worker_threads";
import { unpackLayer } from "../layer/unpack.js";
import { carry, type FromWorker, type ToWorker } from "./worker-messages.js";

const port = parentPort!;
let arrivals: ToWorker[] = [];
let wake = (): void => {};
let giveLower: (layers: readonly string[]) => void = () => {};
let refuseLower: (error: Error) => void = () => {};
let present: Promise<void> = Promise.resolve();

port.on("message", (message: ToWorker) => {
  if (message.kind === "unpack") present = unpack(message.options);
  else if (message.kind === "lower") giveLower(message.layers);
  else if (message.kind === "stop") void stop();
  else {
    arrivals.push(message);
    wake();
  }
});

function say(message: FromWorker): void {
  port.postMessage(message);
}

async function stop(): Promise<void> {
  arrivals = [{ kind: "broken" }];
  wake();
  refuseLower(new Error("unpacking was stopped"));
  await present;
  say({ kind: "stopped" });
}

async function unpack(options: Extract<ToWorker, { kind: "unpack" }>["options"]): Promise<void> {
  arrivals = [];
  let asked: Promise<readonly string[]> | undefined;
  const lower = () => {
    asked ??= new Promise((resolve, reject) => {
      giveLower = resolve;
      refuseLower = reject;
      say({ kind: "lower-needed" });
    });
    return asked;
  };
  try {
    say({ kind: "unpacked", layer: await unpackLayer(chunks(), { ...options, lower }) });
  } catch (error) {
    say({ kind: "failed", error: carry(error) });
  }
}

async function* chunks(): AsyncGenerator<Uint8Array> {
  for (;;) {
    const next = arrivals.shift();
    if (next === undefined) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      continue;
    }
    if (next.kind === "end") return;
    if (next.kind !== "chunk") throw new Error("the source broke off");
    say({ kind: "consumed" });
    yield next.bytes;
  }
}
