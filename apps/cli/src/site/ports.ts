/** Owns the choice of ports of this machine: which are free, and which may be kept for the life of a site. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { MortiseError } from "@mortise/contracts";
import { sleep } from "@mortise/kernel";

/** Below what systems give to outgoing connections: nothing takes the port while its owner is away for a second. */
const PORTS = { from: 20_000, to: 32_000 } as const;
const PORT_ATTEMPTS = 100;
const LOOK_INTERVAL_MS = 250;

/** A port of loopback nothing listens at; 0 when none was found. */
export async function freePort(taken: readonly number[] = []): Promise<number> {
  for (let attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
    const port = randomInt(PORTS.from, PORTS.to);
    if (!taken.includes(port) && (await isFree("127.0.0.1", port))) return port;
  }
  return 0;
}

export function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen({ host, port }, () => server.close(() => resolve(true)));
  });
}

export interface WantedPort {
  /** Of the site file. */
  readonly field: string;
  readonly host: string;
  readonly port: number;
}

/**
 * Resolves when every port is free; one that is not is waited for as long as said.
 * @throws MORTISE_OPERATOR_PORT_IN_USE naming the field
 */
export async function awaitFreePorts(wanted: readonly WantedPort[], patienceMs: number): Promise<void> {
  const until = performance.now() + patienceMs;
  for (const { field, host, port } of wanted) {
    while (!(await isFree(host, port))) {
      if (performance.now() < until) {
        await sleep(LOOK_INTERVAL_MS);
        continue;
      }
      throw new MortiseError({
        code: "MORTISE_OPERATOR_PORT_IN_USE",
        message: `${field}: something else listens at ${host}:${port}, or that address is not this machine's.`,
        detail: { field },
      });
    }
  }
}
