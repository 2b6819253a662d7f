/** Owns the list of all cheats, in the order the docs list them. */
import { ALTERED_CHEATS } from "./altered.js";
import type { Cheat } from "./cheat.js";
import { ENDPOINT_CHEATS } from "./endpoint.js";
import { HARBOR_CHEATS } from "./harbor.js";
import { PROCESS_CHEATS } from "./process.js";
import { PYTEST_CHEATS } from "./pytest.js";
import { REALM_CHEATS } from "./realm.js";
import { RUNNER_CHEATS } from "./runners.js";

export const CHEATS: readonly Cheat[] = [
  ...PYTEST_CHEATS,
  ...ALTERED_CHEATS,
  ...RUNNER_CHEATS,
  ...HARBOR_CHEATS,
  ...PROCESS_CHEATS,
  ...REALM_CHEATS,
  ...ENDPOINT_CHEATS,
];

export { OPEN_CHEATS } from "./open.js";
