/**
 * Owns the contracts of the system: generated messages and services, subjects, what the bus stores, who may
 * use it, configuration schemas, the error catalogue. No I/O; imported by every other package.
 */

export * from "./change-pattern.js";
export * from "./config/agent-runtime.js";
export * from "./config/docker-engine.js";
export * from "./config/engine.js";
export * from "./config/image-build.js";
export { EvaluationProtocol } from "./config/protocol.js";
export * from "./config/remote-harness.js";
export * from "./config/run.js";
export * from "./config/run-record.js";
export * from "./config/sandbox-backends.js";
export * from "./config/site.js";
export * from "./errors/index.js";
export * from "./gen/mortise/v1/capture_pb.js";
export * from "./gen/mortise/v1/common_pb.js";
export * from "./gen/mortise/v1/control_pb.js";
export * from "./gen/mortise/v1/group_pb.js";
export * from "./gen/mortise/v1/metrics_pb.js";
export * from "./gen/mortise/v1/reward_pb.js";
export * from "./gen/mortise/v1/sandbox_pb.js";
export * from "./gen/mortise/v1/trial_pb.js";
export * from "./gen/mortise/v1/weights_pb.js";
export * from "./gen/mortise/v1/work_pb.js";
export * from "./identity.js";
export * from "./invocation.js";
export * from "./subjects.js";
export * from "./task-faults.js";
export * from "./topology.js";
