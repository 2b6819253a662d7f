/** What backends use of this folder. */
export type { AllowedHost, AllowedHostRules } from "./allowed-hosts.js";
export { SandboxNetwork } from "./sandbox-network.js";
