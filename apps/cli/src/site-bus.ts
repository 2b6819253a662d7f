/**
 * Owns the CLI's way onto the bus of a site: connections as a user of the site's identity directory, and what a
 * run stores there. Does not start a server.
 */
import {
  CONSUMERS,
  KV_BUCKETS,
  OBJECT_BUCKETS,
  runConsumers,
  type SiteConfig,
  STREAMS,
} from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology } from "@mortise/kernel";
import { readIdentity } from "./provision/identity.js";

/** Creates what a run and every run stores on the bus; nothing changes when it is there already. */
export async function makeTopology(site: SiteConfig, runId: string): Promise<void> {
  const admin = await connectAs(site, "admin");
  try {
    const consumers = [...CONSUMERS, ...runConsumers(runId)];
    await ensureTopology(admin, { streams: STREAMS, consumers, kv: KV_BUCKETS, objects: OBJECT_BUCKETS });
  } finally {
    await admin.close();
  }
}

export async function connectAs(site: SiteConfig, user: "admin" | "observer"): Promise<Bus> {
  const identity = await readIdentity(site.identity.directory, user);
  const log = createLog({ service: "cli", level: "error" });
  return connectBus({
    url: site.nats.url,
    user: identity.user,
    password: identity.password,
    name: `cli.${user}`,
    log,
  });
}
