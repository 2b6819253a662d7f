/**
 * Owns the cases every sandbox backend must pass. Each runs real sandboxes with real processes; what a backend
 * declares it cannot do is not asked of it, and is listed by the caller.
 */
import { describe } from "vitest";
import type { SandboxBackend } from "../src/backend/types.js";
import { describeConfinement } from "./conformance/confinement.js";
import { describeEgress } from "./conformance/egress.js";
import { describeEndings } from "./conformance/endings.js";
import { describeFiles } from "./conformance/files.js";
import { describeImages } from "./conformance/images.js";
import { type Confines, Kit } from "./conformance/kit.js";
import { describeLimits } from "./conformance/limits.js";
import { describeNetwork } from "./conformance/network.js";
import { describeSnapshots } from "./conformance/snapshots.js";

export type { Confines } from "./conformance/kit.js";

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
  });
}
