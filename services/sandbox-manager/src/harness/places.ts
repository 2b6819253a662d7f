/** Owns where a harness finds things inside a sandbox. The toolbox's place is its own (packages/harness). */

/** The runtime, mounted read-only. */
export const HARNESS_TARGET = "/opt/harness";
/** Home of a harness with an adapter: fresh in every sandbox, and outside the workspace. */
export const HARNESS_HOME = "/home/mortise-agent";
/** Home of a configured command, which brings nothing of its own. */
export const COMMAND_HOME = "/tmp";
