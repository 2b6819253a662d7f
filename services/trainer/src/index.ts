/** What other programs of this repository may use: the trainer as a service, and its supervised fine-tuning. */
export { COMMIT_PHASES, type CommitPhase, type OnPhase } from "./commit/phases.js";
export type { DemonstrationRows, WeightedRow } from "./compute/demonstrations.js";
export { type SupervisedSettings, warmStart } from "./compute/warm-start.js";
export { type TrainerServiceOptions, trainerService } from "./service.js";
