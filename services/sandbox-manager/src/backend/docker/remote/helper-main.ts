/**
 * Owns the process of a helper: what runs on the host of an engine elsewhere, in a container of its own, speaks over its
 * standard streams and ends with them. Started by helper-container.ts.
 */
import { performServerHandshake } from "node:http2";
import net from "node:net";
import { Duplex } from "node:stream";
import { HelperServer } from "./helper-server.js";

/** Everything the engine is to show to sandboxes lies below it; a volume, so that the engine knows it by a path too. */
const SHARED = process.argv[2]!;

// What Node itself makes of a pipe for output would hold the whole process while the engine is slow to take it.
const output = new net.Socket({ fd: 1, readable: false, writable: true });
const streams = Duplex.from({ readable: process.stdin, writable: output });
// A connection that breaks ends this process, and with it every way out of a sandbox.
streams.once("close", () => process.exit());
streams.on("error", () => process.exit());
const session = performServerHandshake(streams, {
  settings: { maxConcurrentStreams: 100_000, initialWindowSize: 1 << 20 },
  maxSessionMemory: 512,
});
session.setLocalWindowSize(16 << 20);
session.once("close", () => process.exit());
session.on("error", () => process.exit());
new HelperServer(SHARED).serve(session);
