/**
 * What tests of networks work with: real namespaces, servers that stand for hosts elsewhere, and a process inside. All
 * of it ends after each test. Asserts nothing.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import http from "node:http";
import type net from "node:net";
import path from "node:path";
import { afterEach } from "vitest";
import { SandboxNetwork } from "../../src/backend/network/index.js";
import { isSteeringAvailable } from "../../src/backend/network/steering.js";
import { withinNetworkNamespace } from "../../src/backend/runc/syscalls.js";
import type { Network } from "../../src/backend/types.js";

export const isRoot = process.platform === "linux" && process.getuid?.() === 0;
export const hasNft = isRoot && (await isSteeringAvailable());
if (!isRoot) console.log("network tests skipped: namespaces need Linux and root");
else if (!hasNft) console.log("allow-list tests skipped: nft is not installed");

/** Stands for a host elsewhere: an address of loopback that only this test listens on. */
export const ALLOWED = "127.9.8.7";
export const OTHER = "127.9.8.8";
export const RULES = { privateHosts: [ALLOWED, "mirror.example"], resolve: async () => [ALLOWED] };
export const onEnd: (() => unknown)[] = [];
let serial = 0;
afterEach(async () => {
  for (const end of onEnd.splice(0).reverse()) await end();
});

export async function create(network: Network, rules = RULES): Promise<SandboxNetwork> {
  const made = await SandboxNetwork.create(network, rules);
  onEnd.push(() => made.close());
  return made;
}

export async function serve(host: string, answer: string, port = 0): Promise<number> {
  const server = http.createServer((_, reply) => reply.end(answer));
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  onEnd.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as net.AddressInfo).port;
}

export interface Attempted {
  readonly kind: "get" | "hello" | "say" | "send" | "hold" | "ended" | "udp";
  readonly host: string;
  readonly port: number;
  readonly bytes?: number;
  readonly site?: string;
  readonly target?: string;
  readonly content?: string;
}

const insiders = new Map<SandboxNetwork, ChildProcess>();

/** What a process inside gets: content, or the code of its error. */
export async function inside(network: SandboxNetwork, attempted: Attempted): Promise<string> {
  const child = insiders.get(network) ?? startInside(network);
  const id = ++serial;
  child.send({ id, ...attempted });
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`ended with ${code}`)));
    child.on("message", (message: { id: number; answer: string }) => {
      if (message.id === id) resolve(message.answer);
    });
  });
}

/** A child belongs to the namespace its parent was in. */
function startInside(network: SandboxNetwork): ChildProcess {
  const fd = openSync(network.namespacePath, "r");
  const child = withinNetworkNamespace(fd, () => fork(path.join(import.meta.dirname, "inside.cjs")));
  closeSync(fd);
  insiders.set(network, child);
  onEnd.push(() => {
    insiders.delete(network);
    child.removeAllListeners("exit");
    child.kill("SIGKILL");
    return once(child, "exit");
  });
  return child;
}

export const get = (network: SandboxNetwork, host: string, port: number) =>
  inside(network, { kind: "get", host, port });
