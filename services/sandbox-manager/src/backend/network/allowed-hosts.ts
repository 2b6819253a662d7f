/**
 * Owns what an allow-list means: which names are accepted, the addresses they stand for at this moment, and which
 * addresses no task may reach. Does not open anything.
 *
 * A1  A name that stands for any address that is not public is refused whole: somebody wants inside.
 * A2  Addresses at which clouds hand out credentials, and 127.0.0.1, are refused whatever the operator allows.
 */
import { lookup } from "node:dns/promises";
import net from "node:net";
import { networkInterfaces } from "node:os";
import { MortiseError } from "@mortise/contracts";

export interface AllowedHost {
  readonly name: string;
  /** IPv4, at least one. */
  readonly addresses: readonly string[];
}

export interface AllowedHostRules {
  /** Names and addresses an allow-list may have although they are not public: a package mirror of one's own. */
  readonly privateHosts?: readonly string[];
  /** IPv4 addresses of a name; the host's resolver when absent. */
  readonly resolve?: (name: string) => Promise<readonly string[]>;
}

const MAX_HOSTS = 256;
const MAX_ADDRESSES = 1024;
const RESOLVE_TIMEOUT_MS = 10_000;
const NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/;

/** AWS and most others; ECS tasks; EKS pods; Alibaba; Azure's, which looks public. */
export const METADATA_ADDRESSES = [
  "169.254.169.254",
  "169.254.170.2",
  "169.254.170.23",
  "100.100.100.200",
  "168.63.129.16",
] as const;

/** Not globally reachable by the IANA IPv4 Special-Purpose Address Registry, and multicast. */
const SPECIAL_RANGES =
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4";

const special = new net.BlockList();
for (const range of SPECIAL_RANGES.split(" ")) {
  const [address, bits] = range.split("/") as [string, string];
  special.addSubnet(address, Number(bits));
}

/** Looks up every host now. Rejects with MORTISE_SANDBOX_NETWORK, or _UNRESOLVED when a name has no address now. */
export async function resolveAllowedHosts(
  hosts: readonly string[],
  rules: AllowedHostRules = {},
): Promise<AllowedHost[]> {
  if (hosts.length > MAX_HOSTS) throw refused(`has ${hosts.length} hosts; ${MAX_HOSTS} are the most`);
  const names = [...new Set(hosts.map(normalised))];
  const resolved = await Promise.all(names.map((name) => resolveHost(name, rules)));
  const n = resolved.reduce((sum, { addresses }) => sum + addresses.length, 0);
  if (n > MAX_ADDRESSES) throw refused(`stands for ${n} addresses; ${MAX_ADDRESSES} are the most`);
  return resolved;
}

async function resolveHost(name: string, rules: AllowedHostRules): Promise<AllowedHost> {
  const addresses = net.isIPv4(name) ? [name] : await addressesOf(name, rules.resolve ?? resolveOnHost);
  const isPrivateAllowed = (rules.privateHosts ?? []).some((host) => normalised(host) === name);
  for (const address of addresses) {
    const reason = reasonToRefuse(address, isPrivateAllowed);
    if (reason !== undefined) throw refused(`${name}${name === address ? "" : ` (${address})`} ${reason}`);
  }
  return { name, addresses: [...new Set(addresses)].sort() };
}

/** A1, A2 */
function reasonToRefuse(address: string, isPrivateAllowed: boolean): string | undefined {
  if ((METADATA_ADDRESSES as readonly string[]).includes(address)) return "is an address of cloud metadata";
  if (address === "127.0.0.1") return "is the sandbox itself";
  if (isPrivateAllowed) return undefined;
  if (special.check(address, "ipv4")) return "is not a public address";
  return isOfThisHost(address) ? "is an address of this host" : undefined;
}

function isOfThisHost(address: string): boolean {
  return Object.values(networkInterfaces()).some((own) => own?.some((one) => one.address === address));
}

function normalised(host: string): string {
  const name = host.toLowerCase().replace(/\.$/, "");
  if (name.includes("*"))
    throw refused(`${JSON.stringify(host)}: wildcards are not supported, name each host`);
  if (net.isIPv6(name)) throw refused(`${host}: only IPv4 addresses can be allowed`);
  // The resolver would read 10.1 or 2130706433 as an address; a name ends in a label that is no number.
  if (!net.isIPv4(name) && (!NAME.test(name) || /(^|\.)(0x[0-9a-f]*|[0-9]+)$/.test(name)))
    throw refused(`${JSON.stringify(host)} is neither a host name nor an IPv4 address`);
  return name;
}

async function addressesOf(
  name: string,
  resolve: NonNullable<AllowedHostRules["resolve"]>,
): Promise<readonly string[]> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("no answer in time")), RESOLVE_TIMEOUT_MS);
  try {
    const addresses = await Promise.race([resolve(name), late.promise]);
    if (addresses.length === 0) throw new Error("it has no IPv4 address");
    return addresses;
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_SANDBOX_NETWORK_UNRESOLVED",
      message: `allowed_hosts: ${name}: ${(cause as Error).message}`,
      cause,
    });
  } finally {
    clearTimeout(timer);
  }
}

async function resolveOnHost(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true, family: 4 });
  return found.map(({ address }) => address);
}

function refused(reason: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_NETWORK", message: `allowed_hosts: ${reason}` });
}
