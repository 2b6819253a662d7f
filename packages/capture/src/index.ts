/**
 * Owns capture as pure functions: normalised history and its digests, where a call belongs in the turn tree,
 * assembly of training rows, the token ledger. No I/O; the proxy writes what this reads, the trainer and status
 * read it.
 */
export * from "./adoption.js";
export * from "./align.js";
export * from "./assembly.js";
export * from "./call.js";
export * from "./call-log.js";
export * from "./conversation.js";
export * from "./digest-memory.js";
export * from "./digests.js";
export * from "./ledger.js";
export * from "./packed.js";
export * from "./reply.js";
export * from "./roles.js";
export * from "./signals/read-signals.js";
export * from "./signals/types.js";
export * from "./threads.js";
export * from "./turn-fields.js";
export * from "./turn-tree.js";
