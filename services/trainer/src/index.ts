/** What other processes of this repository may start: the trainer as a service. */
export { COMMIT_PHASES, type CommitPhase, type OnPhase } from "./commit/phases.js";
export { type TrainerServiceOptions, trainerService } from "./service.js";
