/** Owns what tools may use of the agent runtime: its configuration, for documentation. */
export { RuntimeConfig } from "./config.js";
