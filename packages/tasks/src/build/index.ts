/**
 * Owns the door to building the images of tasks: plans, states, causes, and what is written into a task. The building
 * itself is the sandbox-manager's.
 */
export { BUILD_CAUSES, type BuildFailureCause, buildCauseOf, isWorthRetrying } from "./build-cause.js";
export { type BuildState, buildInputs, readBuildState, writeBuildState } from "./build-state.js";
export { indexBuilt } from "./built-index.js";
export { withDockerImage } from "./docker-image-key.js";
export { type BaseImages, type InstallPlan, installPlanOf, PACK } from "./install-plan.js";
export { writeRepositoryPack } from "./repository-pack.js";
