/**
 * Owns what can be told of a site from outside: who keeps it up, which services are live, which runs are on it. Changes
 * nothing.
 */
import { readSiteConfig, type ServicePresence } from "@mortise/kernel";
import { managerWarnings, withManagers } from "../../sandbox-managers.js";
import { connectIfUp } from "../../site-bus.js";
import { pathsOfSite } from "../files/site-paths.js";
import { SHARED_SERVICES } from "../open-site.js";
import { type Owner, readOwner } from "../owner-lock.js";
import { Presences } from "../processes/presences.js";
import { runsOn } from "./view.js";

/** Of what services say of themselves, what tells them apart. */
const SHOWN_FACTS = ["run", "modelAddress", "backend"];

export interface SiteStatus {
  readonly site: string;
  /** up: every shared service is live. partly: the bus answers and some are not. */
  readonly state: "up" | "partly" | "down";
  /** Of `site up` on this machine. */
  readonly owner: (Owner & { readonly isRunning: boolean }) | undefined;
  readonly bus: string;
  readonly services: readonly ServicePresence[];
  readonly absent: readonly string[];
  readonly runs: readonly string[];
  readonly warnings: readonly string[];
}

export async function siteStatus(siteFile: string): Promise<SiteStatus> {
  const config = await readSiteConfig(siteFile);
  const paths = pathsOfSite(siteFile, config);
  const found = await readOwner(paths.owner);
  const owner = found === undefined ? undefined : { ...found.owner, isRunning: found.isRunning };
  const common = { site: paths.site, owner, bus: config.nats.url };
  const bus = await connectIfUp(config);
  if (bus === undefined) {
    const nothing = { services: [], absent: SHARED_SERVICES, runs: [], warnings: [] };
    return { ...common, state: "down", ...nothing };
  }
  try {
    const presences = await Presences.watch(bus);
    await presences.stop();
    const services = presences.all();
    const absent = SHARED_SERVICES.filter((name) => presences.newest(name) === undefined);
    const warnings = await withManagers(bus, config, managerWarnings);
    const state = absent.length === 0 ? "up" : "partly";
    return { ...common, state, services, absent, runs: runsOn(services), warnings };
  } finally {
    await bus.close();
  }
}

export function statusLines({
  site,
  state,
  owner,
  bus,
  services,
  absent,
  runs,
  warnings,
}: SiteStatus): string[] {
  const since = owner?.isRunning ? ` since ${owner.since}, process ${owner.pid}` : "";
  const dead =
    owner === undefined || owner.isRunning
      ? []
      : [`process ${owner.pid} kept it up and is gone without draining; \`mortise site up\` starts it again`];
  return [
    `${site}: ${state === "partly" ? "partly up" : state}${since}`,
    ...dead,
    `bus ${bus}`,
    ...services.map(
      ({ service, pid, rpcAddress, httpAddress, facts }) =>
        `${service.padEnd(16)} process ${pid}  rpc ${rpcAddress || "none"}  http ${httpAddress}${factsOf(facts)}`,
    ),
    ...(absent.length === 0 || state === "down" ? [] : [`not up: ${absent.join(", ")}`]),
    `runs: ${runs.join(", ") || "none now"}`,
    ...warnings.map((warning) => `warning: ${warning}`),
  ];
}

function factsOf(facts: Readonly<Record<string, string>>): string {
  return SHOWN_FACTS.flatMap((name) => (facts[name] === undefined ? [] : `  ${name} ${facts[name]}`)).join(
    "",
  );
}
