/**
 * Owns the CLI's questions to the sandbox-managers that are live on a bus: each by its address, one by one. Does not
 * start any and does not wait for one to come.
 */
import { MortiseError, SandboxService, type SiteConfig } from "@mortise/contracts";
import { type Bus, type Client, findServices, rpcClient } from "@mortise/kernel";
import { readIdentity } from "./provision/identity.js";
import { observeBus } from "./site/open-site.js";

export interface ManagerHandle {
  readonly address: string;
  readonly client: Client<typeof SandboxService>;
}

const CALL_MS = 5_000;

/** Calls `act` with every live manager; connections end afterwards. */
export async function withManagers<T>(
  bus: Bus,
  site: Pick<SiteConfig, "identity">,
  act: (managers: readonly ManagerHandle[]) => Promise<T>,
): Promise<T> {
  const { bearer } = await readIdentity(site.identity.directory, "observer");
  const presences = await findServices(bus, "sandbox-manager");
  const managers = presences.map(({ rpcAddress }) => ({
    address: rpcAddress,
    client: rpcClient(SandboxService, rpcAddress, { bearer }),
  }));
  try {
    return await act(managers);
  } finally {
    for (const { client } of managers) client.close();
  }
}

/** As `withManagers`, on a connection of its own. */
export async function withManagersOf<T>(
  site: SiteConfig,
  act: (managers: readonly ManagerHandle[]) => Promise<T>,
): Promise<T> {
  const bus = await observeBus(site);
  try {
    return await withManagers(bus, site, act);
  } finally {
    await bus.close();
  }
}

/** What the managers warn of, each with its address. One that does not answer is a warning itself. */
export async function managerWarnings(managers: readonly ManagerHandle[]): Promise<string[]> {
  const answers = await Promise.all(
    managers.map(async ({ address, client }) => {
      try {
        const { warnings } = await client.getSandboxStatus({}, { deadlineMs: CALL_MS });
        return warnings.map((warning) => `sandbox-manager at ${address}: ${warning}`);
      } catch (error) {
        const reason = error instanceof MortiseError ? error.message : String(error);
        return [`sandbox-manager at ${address} does not answer: ${reason}`];
      }
    }),
  );
  return answers.flat();
}
