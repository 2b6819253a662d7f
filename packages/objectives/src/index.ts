/**
 * The mathematics of training in plain numbers: advantages, losses with their gradients, averaging, pacing,
 * monitoring and evaluation. No I/O, no dependencies, no tensors: arrays in, arrays out.
 */
export * from "./advantages/group-advantages.js";
export * from "./evaluation/best-at-k.js";
export * from "./evaluation/pass-at-k.js";
export * from "./evaluation/random.js";
export * from "./evaluation/solve-rate-rise.js";
export * from "./evaluation/wilson.js";
export * from "./losses/aggregation.js";
export * from "./losses/cispo.js";
export * from "./losses/clip-ratio.js";
export * from "./losses/gspo.js";
export * from "./losses/importance.js";
export * from "./losses/kl.js";
export * from "./losses/objective.js";
export * from "./losses/ppo-clip.js";
export * from "./losses/presets.js";
export * from "./losses/reinforce.js";
export * from "./losses/token-terms.js";
export * from "./monitoring/alarms.js";
export * from "./monitoring/consistency.js";
export * from "./monitoring/histogram.js";
export * from "./monitoring/trend.js";
export * from "./optimiser/adamw.js";
export * from "./optimiser/clip-global-norm.js";
export * from "./optimiser/schedule.js";
export * from "./pacing/capacity.js";
export * from "./pacing/other-systems.js";
export * from "./pacing/staleness.js";
export * from "./statistics.js";
