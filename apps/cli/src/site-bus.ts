/**
 * Owns the CLI's way onto the bus of a site: connections as a user of the site's identity directory, and what a
 * run stores there. Does not start a server.
 */
import {
  CONSUMERS,
  KV_BUCKETS,
  MortiseError,
  OBJECT_BUCKETS,
  runConsumers,
  type SiteConfig,
  STREAMS,
} from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology } from "@mortise/kernel";
import { readIdentity } from "./provision/identity.js";

const LOOK_TIMEOUT_MS = 2_000;

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

/** @param connectTimeoutMs how long an answer is waited for; the bus's own patience when absent */
export async function connectAs(
  site: SiteConfig,
  user: "admin" | "observer",
  connectTimeoutMs?: number,
): Promise<Bus> {
  const identity = await readIdentity(site.identity.directory, user);
  const log = createLog({ service: "cli", level: "error" });
  return connectBus({
    url: site.nats.url,
    user: identity.user,
    password: identity.password,
    name: `cli.${user}`,
    log,
    ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }),
  });
}

/** As an observer; undefined when nothing answers: the bus of a site of this machine ends with it. */
export async function connectIfUp(
  site: SiteConfig,
  connectTimeoutMs: number = LOOK_TIMEOUT_MS,
): Promise<Bus | undefined> {
  try {
    return await connectAs(site, "observer", connectTimeoutMs);
  } catch (error) {
    if (error instanceof MortiseError && error.code === "MORTISE_TRANSPORT_UNAVAILABLE") return undefined;
    throw error;
  }
}
