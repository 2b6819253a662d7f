/**
 * Clients of the model endpoint that mean harm: ones that never read, send without end, open connections by the
 * hundred, or hold them. The relay keeps little of what passes, and its other sandboxes never notice. Plain sockets.
 */
import { readdirSync } from "node:fs";
import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { ModelRelay } from "../../src/backend/relay.js";

const MIB = 1024 * 1024;
/** What the kernel holds for one loopback connection at most, both ends, twice; the rest would be ours. */
const KERNEL_BYTES = 32 * MIB;
const CHUNK = Buffer.alloc(64 * 1024, "x");

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A server in the proxy's place. @returns its port */
async function upstream(serve: (socket: net.Socket) => void): Promise<number> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as net.AddressInfo).port;
}

async function relayTo(port: number): Promise<number> {
  const { relay, port: own } = await ModelRelay.open({ host: "127.0.0.1", port, listenerKey: "r.t.k" });
  ends.push(() => relay.close());
  return own;
}

function dial(port: number): net.Socket {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  ends.push(() => socket.destroy());
  return socket;
}

/** Writes until nobody takes more for a while. @returns bytes the kernel and everybody behind it took */
async function writeUntilStuck(socket: net.Socket): Promise<number> {
  let taken = 0;
  for (;;) {
    const isRoom = socket.write(CHUNK);
    taken += CHUNK.byteLength;
    if (isRoom) continue;
    const drained = new Promise((resolve) => socket.once("drain", resolve));
    const stuck = delay(1000, "stuck");
    if ((await Promise.race([drained, stuck])) === "stuck") return taken;
    if (taken > 4 * KERNEL_BYTES) return taken;
  }
}

/** The first line an echoing upstream says back. */
async function answered(port: number): Promise<string> {
  const socket = dial(port);
  socket.write("hello\n");
  const chunk = await new Promise<Buffer>((resolve) => socket.once("data", resolve));
  socket.destroy();
  return chunk.toString();
}

const echo = (socket: net.Socket) => socket.pipe(socket);

test("a client that never reads is sent no more than fits on the way", async () => {
  const sent = Promise.withResolvers<number>();
  const bomb = await relayTo(await upstream((socket) => void writeUntilStuck(socket).then(sent.resolve)));
  const other = await relayTo(await upstream(echo));
  const before = process.memoryUsage();
  dial(bomb).pause();
  expect(await sent.promise).toBeLessThan(KERNEL_BYTES);
  const { arrayBuffers } = process.memoryUsage();
  expect(arrayBuffers - before.arrayBuffers).toBeLessThan(8 * MIB);
  expect(await answered(other)).toBe("@mortise/1 r.t.k\r\nhello\n");
}, 60_000);

test("of a request without an end no more is taken than the proxy reads", async () => {
  const port = await relayTo(await upstream((socket) => socket.pause()));
  const before = process.memoryUsage();
  expect(await writeUntilStuck(dial(port))).toBeLessThan(KERNEL_BYTES);
  expect(process.memoryUsage().arrayBuffers - before.arrayBuffers).toBeLessThan(8 * MIB);
}, 60_000);

test("a sandbox has so many connections and no more; another's are its own, and ended ones are free again", async () => {
  let nUpstream = 0;
  const place = await upstream((socket) => {
    nUpstream++;
    socket.on("close", () => nUpstream--);
    echo(socket);
  });
  const [greedy, other] = [await relayTo(place), await relayTo(place)];
  const open = new Set<net.Socket>();
  for (let n = 0; n < 400; n++) {
    const socket = dial(greedy);
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.resume();
  }
  await expect.poll(() => [open.size, nUpstream]).toEqual([64, 64]);
  expect(await answered(other)).toContain("hello");
  for (const socket of open) socket.destroy();
  await expect.poll(() => nUpstream).toBe(0);
  expect(await answered(greedy)).toContain("hello");
}, 60_000);

test("thousands of connections, one after the other and cut at any moment, leave nothing open", async () => {
  const port = await relayTo(await upstream(echo));
  await answered(port);
  const descriptors = () => readdirSync("/proc/self/fd").length;
  const before = descriptors();
  for (let round = 0; round < 50; round++) {
    const sockets = Array.from({ length: 60 }, () =>
      net.connect(port, "127.0.0.1").on("error", () => undefined),
    );
    for (const [at, socket] of sockets.entries()) {
      if (at % 3 === 0) socket.write("x");
      if (at % 3 === 1) socket.end("hello\n");
      setTimeout(() => socket.destroy(), at % 7);
    }
    await delay(10);
  }
  await expect.poll(descriptors).toBeLessThanOrEqual(before);
  expect(await answered(port)).toContain("hello");
}, 60_000);
