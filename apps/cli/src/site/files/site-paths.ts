/**
 * Owns where the files of a site lie: in one directory, or where its site file says. Creates nothing.
 */
import { dirname, join, resolve } from "node:path";
import type { SiteConfig } from "@mortise/contracts";

export interface SitePaths {
  /** Working directory of its processes. */
  readonly directory: string;
  readonly site: string;
  readonly identity: string;
  readonly logs: string;
  readonly natsConfig: string;
  /** Where a nats-server writes the port it took. */
  readonly natsPorts: string;
  readonly jetstream: string;
  /** State of the services: checkpoints, sandboxes, caches. */
  readonly state: string;
  /** Who runs its processes now. */
  readonly owner: string;
}

/** A new site in a directory of its own. */
export function sitePaths(directory: string): SitePaths {
  const at = (name: string) => join(directory, name);
  return {
    directory,
    site: at("site.toml"),
    identity: at("identity"),
    logs: at("logs"),
    natsConfig: at("nats.conf"),
    natsPorts: at("ports"),
    jetstream: at("jetstream"),
    state: at("state"),
    owner: at("owner.json"),
  };
}

/** A site as its file has it. Two site files with one state directory are one site: it has one owner. */
export function pathsOfSite(siteFile: string, site: SiteConfig): SitePaths {
  const state = resolve(site.state.directory);
  return {
    ...sitePaths(dirname(resolve(siteFile))),
    site: resolve(siteFile),
    identity: resolve(site.identity.directory),
    state,
    logs: join(state, "logs"),
    natsPorts: join(state, "ports"),
    owner: join(state, "owner.json"),
  };
}
