/**
 * Owns looking at a site whose services were started by somebody else: its file, its bus, who is live there. Starts
 * nothing.
 */
import { MortiseError, SERVICE_NAMES, type ServiceName, type SiteConfig } from "@mortise/contracts";
import { type Bus, readSiteConfig } from "@mortise/kernel";
import { readIdentity } from "../provision/identity.js";
import { connectIfUp } from "../site-bus.js";
import { Presences } from "./processes/presences.js";
import { RUN_SERVICES } from "./processes/services.js";

/** Much more than a bus of this machine takes, also on a busy one. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Services every run of a site needs and none starts itself. */
export const SHARED_SERVICES = SERVICE_NAMES.filter(
  (name): name is Exclude<ServiceName, "scheduler" | "trainer"> => !RUN_SERVICES.has(name),
);

export interface OpenSite {
  readonly file: string;
  readonly config: SiteConfig;
  /** With the observer's permissions. */
  readonly bus: Bus;
  readonly presences: Presences;
  readonly bearer: string;
  /** Shared services that are not live now. */
  absent(): ServiceName[];
  close(): Promise<void>;
}

/** @throws MORTISE_CONFIG_* for the file, MORTISE_OPERATOR_SITE_DOWN when nothing answers at nats.url */
export async function openSite(file: string): Promise<OpenSite> {
  const config = await readSiteConfig(file);
  const bus = await observeBus(config, file);
  const presences = await Presences.watch(bus);
  const { bearer } = await readIdentity(config.identity.directory, "observer");
  return {
    file,
    config,
    bus,
    presences,
    bearer,
    absent: () => SHARED_SERVICES.filter((name) => presences.newest(name) === undefined),
    close: async () => {
      await presences.stop();
      await bus.close();
    },
  };
}

/** The bus of a site, to look at. @throws MORTISE_OPERATOR_SITE_DOWN when nothing answers at nats.url */
export async function observeBus(config: SiteConfig, file?: string): Promise<Bus> {
  const bus = await connectIfUp(config, CONNECT_TIMEOUT_MS);
  if (bus === undefined) throw siteDown(config, file);
  return bus;
}

export function siteDown({ nats }: SiteConfig, file = "<its site file>"): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_SITE_DOWN",
    message: `Nothing answers at ${nats.url}.`,
    fix: `Start the site: mortise site up --site ${file}`,
    detail: { field: "nats.url" },
  });
}
