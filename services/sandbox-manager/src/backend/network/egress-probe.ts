/**
 * Owns showing what a network namespace can reach: connections are begun inside it, by sockets of this process, to
 * places that must answer and places that must not. Does not decide what follows from it and changes nothing.
 *
 * E1  What counts as closed is the kernel's refusal at the source. A packet that left, even if nobody answered, and
 *     an answer of any kind from elsewhere count as reachable: a probe must not depend on what is out there.
 * E2  A place that is to be unreachable really exists where that can be arranged: a port and an abstract socket of
 *     this host listen while they are tried.
 */
import { randomUUID } from "node:crypto";
import { closeSync, readFileSync } from "node:fs";
import net from "node:net";
import { networkInterfaces } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { checked, libraryOf } from "../../libc.js";
import { withinNetworkNamespace } from "../runc/syscalls.js";
import type { NetworkProbe } from "../types.js";
import { Attempt, listenOn, type Place, portOf, sendDatagram } from "./sockets.js";

/** Loopback answers at once; what is still undecided after this has left the namespace. */
const PATIENCE_MS = 250;
const PAUSE_MS = 5;
/** The kernel refused before anything was sent. */
const REFUSED_AT_SOURCE = new Set(
  "ENETUNREACH EHOSTUNREACH ENETDOWN EADDRNOTAVAIL EAFNOSUPPORT EACCES EPERM".split(" "),
);
const SIOCGIFFLAGS = 0x8913;
const IFF_UP = 1;
const IFREQ_BYTES = 40;
/** A query for the root's name servers: the shortest question a resolver answers. */
export const DNS_QUERY = Buffer.from("0001010000010000000000000000020001", "hex");

export interface ProbeTarget {
  readonly name: string;
  readonly place: Place;
  readonly protocol: "tcp" | "udp";
  readonly expected: NetworkProbe["expected"];
}

/** What must never be reachable, whatever the policy allows. */
const ALWAYS_CLOSED: readonly ProbeTarget[] = [
  closed("tcp 1.1.1.1:443", { host: "1.1.1.1", port: 443 }),
  closed("tcp 8.8.8.8:53", { host: "8.8.8.8", port: 53 }),
  closed("udp-dns 8.8.8.8:53", { host: "8.8.8.8", port: 53 }, "udp"),
  closed("tcp 169.254.169.254:80", { host: "169.254.169.254", port: 80 }),
  closed("tcp 10.0.0.1:443", { host: "10.0.0.1", port: 443 }),
  closed("tcp6 [fd00:ec2::254]:80", { host: "fd00:ec2::254", port: 80 }),
  closed("tcp6 [2606:4700:4700::1111]:443", { host: "2606:4700:4700::1111", port: 443 }),
  closed("udp6-dns [2001:4860:4860::8888]:53", { host: "2001:4860:4860::8888", port: 53 }, "udp"),
];

/**
 * Tries the targets given and everything that must be closed, this host's own addresses among it.
 * @param allowed addresses that are not to be closed
 */
export function probeNamespace(
  namespaceFd: number,
  targets: readonly ProbeTarget[],
  allowed: ReadonlySet<string>,
): Promise<NetworkProbe[]> {
  return probed(targets, allowed, async (all) => {
    const begun: Begun[] = [];
    try {
      const interfaces = withinNetworkNamespace(namespaceFd, () => {
        for (const target of all) begun.push(begin(target));
        return interfacesUp();
      });
      await settle(begun);
      return { interfaces, states: begun.map(({ attempt, datagram }) => attempt?.state ?? datagram!) };
    } finally {
      for (const { attempt } of begun) attempt?.close();
    }
  });
}

/** What came of trying places: a state each, in order, and the interfaces that are up. */
export interface Tried {
  /** connected, pending, sent, or the name of an errno. */
  readonly states: readonly string[];
  readonly interfaces: readonly string[];
}

/**
 * As `probeNamespace`, by somebody who can try from inside where this process cannot.
 * @param attempt begins them all at once and looks at each until it is decided or would have left
 */
export async function probed(
  targets: readonly ProbeTarget[],
  allowed: ReadonlySet<string>,
  attempt: (all: readonly ProbeTarget[]) => Promise<Tried>,
): Promise<NetworkProbe[]> {
  const host = new HostListeners();
  const closedOnes = [...ALWAYS_CLOSED, ...resolvers(), ...host.targets];
  const all = [
    ...targets,
    ...closedOnes.filter(({ place }) => !("host" in place && allowed.has(place.host))),
  ];
  try {
    const { interfaces, states } = await attempt(all);
    const probes = all.map(({ name, expected, place }, at) => ({
      name,
      expected,
      // What nobody tried was not shown to be closed.
      observed: observe(place, states[at] ?? "not tried"),
    }));
    return [interfaceProbe(interfaces), ...probes];
  } finally {
    host.close();
  }
}

interface Begun {
  readonly target: ProbeTarget;
  readonly attempt?: Attempt;
  readonly datagram?: string;
}

function begin(target: ProbeTarget): Begun {
  return target.protocol === "tcp"
    ? { target, attempt: new Attempt(target.place) }
    : { target, datagram: sendDatagram(target.place, DNS_QUERY) };
}

async function settle(begun: readonly Begun[]): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  const undecided = () => begun.some(({ attempt }) => attempt?.state === "pending");
  for (;;) {
    for (const { attempt } of begun) attempt?.look();
    if (!undecided() || performance.now() >= deadline) return;
    await delay(PAUSE_MS);
  }
}

/** E1. Only inside the namespace can its own loopback addresses and abstract names refuse. */
function observe(place: Place, state: string): NetworkProbe["observed"] {
  if (REFUSED_AT_SOURCE.has(state)) return "unreachable";
  return state === "ECONNREFUSED" && isOwn(place) ? "unreachable" : "reachable";
}

function isOwn(place: Place): boolean {
  return "abstractName" in place || place.host === "::1" || place.host.startsWith("127.");
}

/** E2: a port on every address and an abstract socket of this host, open while a proof is made. */
class HostListeners {
  readonly #descriptors: number[] = [];
  readonly targets: readonly ProbeTarget[];

  constructor() {
    const abstractName = `mortise-probe-${randomUUID()}`;
    this.#descriptors.push(listenOn({ abstractName }));
    const port = this.#listen("0.0.0.0");
    const found = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
    const v4 = found.filter(({ family }) => family === "IPv4").map(({ address }) => address);
    // Link-local addresses mean nothing without an interface.
    const v6 = found
      .filter(({ family, scopeid }) => family === "IPv6" && !scopeid)
      .map(({ address }) => address);
    const port6 = v6.length > 0 ? this.#listen("::") : 0;
    this.targets = [
      closed("abstract socket of the host", { abstractName }),
      ...v4.map((host) => closed(`host port at ${host}`, { host, port })),
      ...v6.map((host) => closed(`host port at [${host}]`, { host, port: port6 })),
    ];
  }

  close(): void {
    for (const fd of this.#descriptors) closeSync(fd);
  }

  #listen(host: string): number {
    const fd = listenOn({ host, port: 0 });
    this.#descriptors.push(fd);
    return portOf(fd);
  }
}

/** The resolvers this host asks: inside, none of them may be. */
function resolvers(): ProbeTarget[] {
  const configured = [...readIfThere("/etc/resolv.conf").matchAll(/^nameserver\s+(\S+)/gm)].map(
    ([, host]) => host!,
  );
  return configured
    .filter((host) => net.isIP(host) !== 0 && !host.startsWith("127."))
    .map((host) => closed(`udp-dns ${host}:53`, { host, port: 53 }, "udp"));
}

const libc = libraryOf({
  socket: "int socket(int, int, int)",
  ioctl: "int ioctl(int, unsigned long, void*)",
});

/** Names of the interfaces that are up in the thread's namespace. Some kernels make unused tunnels in each: down. */
function interfacesUp(): string[] {
  const listed = readFileSync("/proc/thread-self/net/dev", "utf8").split("\n").slice(2);
  const names = listed.map((line) => line.split(":")[0]!.trim()).filter((name) => name !== "");
  const fd = checked("socket", libc().socket(2, 2 | 0o2_000_000, 0));
  try {
    return names.filter((name) => {
      const request = Buffer.alloc(IFREQ_BYTES);
      request.write(name, "latin1");
      checked("ioctl", libc().ioctl(fd, SIOCGIFFLAGS, request));
      return (request.readInt16LE(16) & IFF_UP) !== 0;
    });
  } finally {
    closeSync(fd);
  }
}

function interfaceProbe(up: readonly string[]): NetworkProbe {
  const others = up.filter((name) => name !== "lo");
  return {
    name: others.length === 0 ? "interfaces besides lo" : `interfaces besides lo: ${others.join(", ")}`,
    expected: "unreachable",
    observed: others.length === 0 ? "unreachable" : "reachable",
  };
}

export function closed(name: string, place: Place, protocol: ProbeTarget["protocol"] = "tcp"): ProbeTarget {
  return { name, place, protocol, expected: "unreachable" };
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
