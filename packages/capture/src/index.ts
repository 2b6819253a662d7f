/**
 * Owns capture as pure functions: normalised history and its digests, the turn tree, assembly of training
 * rows, the token ledger. No I/O; the proxy writes what this reads, the trainer and status read it.
 */
export * from "./adoption.js";
export * from "./assembly.js";
export * from "./conversation.js";
export * from "./digests.js";
export * from "./ledger.js";
export * from "./packed.js";
export * from "./reply.js";
export * from "./roles.js";
export * from "./signals.js";
export * from "./turn-tree.js";
