/**
 * Owns what programs other than the service itself may use: backends, images, the patch format, sealing, the sweep. Services never
 * import each other; this is for tools and tests.
 */
export { DockerBackend } from "./backend/docker/backend.js";
export { packBelow, resolveDirectory, unpackBelow } from "./backend/files.js";
export { SandboxNetwork } from "./backend/network/index.js";
export { type Output, OutputCollector } from "./backend/output.js";
export {
  BACKEND_INTERFACE_VERSION,
  type BackendPlugIn,
  loadPlugIn,
  type PlugInContext,
} from "./backend/plug-in.js";
export { ProcessBackend } from "./backend/process/backend.js";
export { listenerLine, ModelRelay, type OuterEnd } from "./backend/relay.js";
export { RuncBackend } from "./backend/runc/backend.js";
export { RuncImages as LayeredImages } from "./backend/runc/images.js";
export { shownBelow } from "./backend/runc/layers.js";
export { sweep } from "./backend/runc/sweep.js";
export { withinNetworkNamespace } from "./backend/runc/syscalls.js";
export { TreeStore } from "./backend/tree-store.js";
export * from "./backend/types.js";
export { type CleanedPlace, type CleanOptions, clean } from "./cleaning/clean.js";
export { environmentOf } from "./environment.js";
export { HARNESS_HOME } from "./harness/places.js";
export type { ShelvedHarness } from "./harness/shelved-harness.js";
export { TaskImages, type TaskImagesOptions } from "./images/build/task-images.js";
export { ImageStore } from "./images/store/image-store.js";
export { decodePatch, encodePatch } from "./patch/codec.js";
export { type Patch, type PatchEntry, sha256 } from "./patch/patch.js";
export { diffDirectory } from "./patch/snapshot.js";
export * from "./sealing/index.js";
export { registryOf } from "./select-backend.js";
export { HarnessShelf } from "./shelf/harnesses.js";
