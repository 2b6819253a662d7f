/** Owns how many bodies a run of the suite takes, and from which seed: few in every test run, many when asked. */
export const BODIES = Number(process.env.MORTISE_FUZZ_BODIES ?? 2_000);
export const SEED = Number(process.env.MORTISE_FUZZ_SEED ?? 1);
