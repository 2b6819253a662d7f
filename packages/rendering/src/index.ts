/**
 * Owns what lies between conversations and token ids: rendering with a checkpoint's chat template, only what
 * is new, and parsing sampled ids into text, reasoning and tool calls while they arrive. Pure.
 */
export { FAMILY_NAMES, type FamilyProfile, familyOf } from "./families/registry.js";
export * from "./families/verify.js";
export type { LateSystemPolicy } from "./render/late-system.js";
export type { RenderNote } from "./render/note.js";
export * from "./render/renderer.js";
export type { TemplateTraits } from "./render/traits.js";
export * from "./tools/format.js";
export * from "./tools/reply-parser.js";
export type { ReasoningMarks, ToolFormat, ToolFormatName } from "./tools/types.js";
