/** Owns the list of all cheats, in the order the docs list them. */
import type { Cheat } from "./cheat.js";
import { REALM_CHEATS } from "./realm.js";

export const CHEATS: readonly Cheat[] = [...REALM_CHEATS];
