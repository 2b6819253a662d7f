/** Owns what other packages may use of the CLI: provisioning and supervision, for tests that start a whole run. */
export { provisionNatsServer } from "./provision/nats-server/provision.js";
export { provisionSandboxRuntime } from "./provision/runc.js";
export { type ProcessSpec, type ProcessStatus, Supervisor } from "./supervisor/supervisor.js";
