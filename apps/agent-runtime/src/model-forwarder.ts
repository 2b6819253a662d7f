/**
 * Owns the way from an agent to the model: connections accepted on this machine's loopback are joined, as those of any
 * sandbox are, to the proxy named by the invocation, over TLS where its URL says so. The listener's key never enters
 * the place the agent is in.
 */
import net from "node:net";
import tls from "node:tls";
import { ModelRelay, type OuterEnd } from "@mortise/sandbox-manager";

const TLS_PORT = 443;
const PLAIN_PORT = 80;

export interface ModelTarget {
  /** http or https with host and port, without a path. */
  readonly url: string;
  /** Empty: nothing is said. */
  readonly listenerKey: string;
}

/** A listener on a free port of loopback, until the relay is closed. */
export function openForwarder({
  url,
  listenerKey,
}: ModelTarget): Promise<{ relay: ModelRelay; port: number }> {
  const { protocol, hostname, port: named } = new URL(url);
  const isPlain = protocol === "http:";
  const host = hostname.replace(/^\[|\]$/g, "");
  const port = Number(named || (isPlain ? PLAIN_PORT : TLS_PORT));
  const upstream = { host, port, ...(listenerKey === "" ? {} : { listenerKey }) };
  return isPlain ? ModelRelay.open(upstream) : ModelRelay.open(upstream, () => overTls(host, port));
}

function overTls(host: string, port: number): OuterEnd {
  const servername = net.isIP(host) === 0 ? { servername: host } : {};
  const socket = tls.connect({ host, port, ...servername });
  socket.setNoDelay(true);
  return { socket, ready: "secureConnect" };
}
