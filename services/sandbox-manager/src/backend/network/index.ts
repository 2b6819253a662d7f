/** What backends use of this folder. */
export type { AllowedHost, AllowedHostRules } from "./allowed-hosts.js";
export { type ModelEndpoint, type OpenModel, SandboxNetwork } from "./sandbox-network.js";
