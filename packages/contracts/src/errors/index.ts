/** Owns what of the errors other packages use. */
export * from "./catalogue.js";
export * from "./error.js";
export type { Disposition } from "./row.js";
