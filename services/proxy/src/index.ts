/** Owns what tests and benchmarks start in their own process; services meet the proxy over gRPC and HTTP only. */
export {
  type ChooseReply,
  ScriptedEngine,
  type ScriptedOptions,
  type ScriptedReply,
} from "./engine/scripted/scripted-engine.js";
export type {
  Engine,
  EngineCapabilities,
  EngineStatus,
  Generated,
  GenerateRequest,
  LoadedWeights,
  RoutedExperts,
} from "./engine/types.js";
export { type MakeEngine, proxyService, startProxy } from "./service.js";
