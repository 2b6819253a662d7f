/**
 * Owns what other packages may use of the scheduler: its definition. Everything else is internal.
 */
export { scheduler } from "./service.js";
