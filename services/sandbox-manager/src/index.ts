export { DockerBackend } from "./backend/docker/backend.js";
export { ProcessBackend } from "./backend/process/backend.js";
export { RuncBackend } from "./backend/runc/backend.js";
export * from "./backend/types.js";
export { decodePatch, encodePatch } from "./patch/codec.js";
export type { Patch, PatchEntry } from "./patch/patch.js";
