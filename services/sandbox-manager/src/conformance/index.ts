/**
 * Owns the cases every sandbox backend must pass, ours and those of others. Each runs real sandboxes with real
 * processes; what a backend declares it cannot do is not asked of it, and is listed by the caller. Runs within vitest,
 * which is whoever's who calls it.
 */
import { describe } from "vitest";
import type { SandboxBackend } from "../backend/types.js";
import { describeConfinement } from "./confinement.js";
import { describeEgress } from "./egress.js";
import { describeEndings } from "./endings.js";
import { describeEscapes } from "./escapes.js";
import { describeFiles } from "./files.js";
import { describeImages } from "./images.js";
import { type Confines, Kit } from "./kit.js";
import { describeLimits } from "./limits.js";
import { describeNetwork } from "./network.js";
import { describeSnapshots } from "./snapshots.js";

/** What a backend under test must allow: the hosts of the egress cases are addresses of this host. */
export { ALLOWED_HOSTS } from "./egress.js";
export type { Confines } from "./kit.js";

/**
 * Declares the cases of one backend.
 * @param make a backend that was not started; called once
 */
export function describeBackend(name: string, make: () => SandboxBackend, can: Confines): void {
  describe(`${name} backend`, () => {
    const kit = new Kit(name, make, can);
    describeEndings(kit);
    describeNetwork(kit);
    describeEgress(kit);
    describeLimits(kit);
    describeFiles(kit);
    describeSnapshots(kit);
    describeImages(kit);
    describeConfinement(kit);
    describeEscapes(kit);
  });
}
