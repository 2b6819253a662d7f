/**
 * Owns what lies between conversations and token ids: rendering with a checkpoint's chat template, only what
 * is new, and parsing sampled ids into text, reasoning and tool calls while they arrive. Pure.
 */
export * from "./render/renderer.js";
export * from "./tools/format.js";
export * from "./tools/reply-parser.js";
export * from "./tools/types.js";
