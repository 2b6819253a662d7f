/** Owns what a site says of its cluster, as the backend wants it said. See `sandbox.kubernetes` of the site file. */
import type { SiteConfig } from "@mortise/contracts";

export type KubernetesSettings = SiteConfig["sandbox"]["kubernetes"];
