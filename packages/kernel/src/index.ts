/**
 * Owns what every service stands on: time, actors, the bus, rpc, configuration, logs, traces, metrics and the
 * life of a process. Knows no noun of the domain.
 */
export { Actor, type ActorOptions, type Step } from "./actor.js";
export { type Bus, connectBus, TYPE_HEADER } from "./bus/bus.js";
export type { Kv, KvEntry } from "./bus/kv.js";
export { Lease, type LeaseOptions } from "./bus/lease.js";
export type { Objects } from "./bus/objects.js";
export { ensureTopology, type Topology } from "./bus/topology.js";
export type {
  BusOptions,
  ConsumeOptions,
  Consuming,
  Following,
  FollowOptions,
  Meta,
  Published,
  PublishOptions,
} from "./bus/types.js";
export { type Cancel, type Clock, ManualClock, systemClock } from "./clock.js";
export { nearestName, parseStrict } from "./config/parse.js";
export { loadToml, mergeSets, mergeTables, type Table } from "./config/toml.js";
export { equalSecrets, randomToken } from "./crypto.js";
export { at, dispositionOf, fromUnknown, operatorsError } from "./errors.js";
export { createLog, type Log, type LogOptions, withoutCredentials } from "./log.js";
export { Metrics } from "./metrics.js";
export { type BackoffOptions, backoff, type RetryOptions, retry, sleep } from "./retry.js";
export { type RpcClientOptions, rpcClient } from "./rpc/client.js";
export { implement, RpcServer, type RpcServerOptions } from "./rpc/server.js";
export type { CallContext, CallOptions, Client, Handlers, ServiceBinding } from "./rpc/types.js";
export type { CpuAnswer } from "./service/http.js";
export { findServices, watchServices } from "./service/presence.js";
export { runService } from "./service/run-service.js";
export { readRunConfig, readSiteConfig } from "./service/settings.js";
export type { Running, ServiceContext, ServiceDefinition, ServicePresence } from "./service/types.js";
export { type CpuReport, StageCpu, stageCpu } from "./stage-cpu.js";
export {
  continueTrace,
  currentTraceParent,
  startTracing,
  TRACE_PARENT,
  type TracingOptions,
  tracer,
  withSpan,
  withTrace,
} from "./telemetry.js";
export { TimerWheel } from "./timer-wheel.js";
