/**
 * Owns fixtures shared by the tests of several packages. Real components only; never imported by shipped code.
 */
export { findNatsServer } from "./nats-binary.js";
export { type NatsFixture, type NatsOptions, startNats } from "./nats-server.js";
export { endProcess, type ReadyOptions, whenReady } from "./service-process.js";
