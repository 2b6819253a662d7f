/**
 * Owns what an agent may reach: what its task asks for, within what the site allows. Pure.
 * Whatever is decided against the task's wish is said, since it changes what the task is.
 */
import { MortiseError, type SiteConfig } from "@mortise/contracts";
import type { TaskNetwork } from "@mortise/tasks";
import type { ModelAddress, Network } from "../backend/types.js";

/** One word: it goes into a line. */
const LISTENER_KEY = /^[A-Za-z0-9._-]{0,400}$/;

export interface Reach {
  readonly network: Network;
  /** For the record: "model", or "allow-list: host, …". */
  readonly reachable: string;
  readonly notes: readonly string[];
}

/** The model endpoint always, and the hosts of an allow-list. */
export function reachOf(task: TaskNetwork, site: SiteConfig["sandbox"], model: ModelAddress): Reach {
  const isPublic = task.mode === "public";
  const hosts = isPublic ? site.publicHosts : task.allowedHosts;
  const isOpened = task.mode !== "no-network" && hosts.length > 0;
  const notes = isPublic
    ? [
        `the task asks for a public network; this site gives ${isOpened ? "only its sandbox.publicHosts" : "none"}`,
      ]
    : [];
  if (!isOpened) return { network: { kind: "model", ...model }, reachable: "model", notes };
  const allowedHosts = [...new Set(hosts)].sort();
  return {
    network: { kind: "allow-list", ...model, allowedHosts },
    reachable: `allow-list: ${allowedHosts.join(", ")}`,
    notes,
  };
}

/**
 * "host:port", the host possibly an IPv6 address in brackets. Throws MORTISE_SANDBOX_SETUP.
 * @param listenerKey of the session; none when empty
 */
export function parseModelAddress(address: string, listenerKey = ""): ModelAddress {
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon).replace(/^\[|\]$/g, "");
  const port = Number(address.slice(colon + 1));
  if (colon < 1 || !Number.isInteger(port) || port < 1 || port > 65_535)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_SETUP",
      message: `model_address ${JSON.stringify(address)} is not host:port`,
    });
  if (!LISTENER_KEY.test(listenerKey))
    throw new MortiseError({
      code: "MORTISE_SANDBOX_SETUP",
      message: "listener_key is not what a proxy gives out",
    });
  return { host, port, ...(listenerKey === "" ? {} : { listenerKey }) };
}
