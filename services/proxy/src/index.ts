/** Owns what tests and benchmarks start in their own process; services meet the proxy over gRPC and HTTP only. */
export type { Engine, EngineStatus, Generated, GenerateRequest, LoadedWeights } from "./engine/types.js";
export { type MakeEngine, proxyService, startProxy } from "./service.js";
