/**
 * Owns the files of a cluster that serve every run: one identity per service, the server's configuration, the
 * site file. Says where things are inside the containers. Does not own what a run needs (run-files.ts).
 *
 * P1  Identities that exist are kept: running services hold them.
 * P2  Each user's identity lies in a directory of its own, so that a container can be given that one alone.
 */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "smol-toml";
import {
  BUS_USERS,
  createIdentities,
  type Identities,
  natsServerConfig,
  readIdentity,
  writeIdentities,
  writePrivate,
} from "../provision/identity.js";
import { miniHarness } from "../site/files/mini-harness.js";
import { projectRoot } from "../site/project-paths.js";

/** Inside a container every service has these ports to itself. */
const PORTS = { nats: 4222, monitoring: 8222, http: 9090, rpc: 9091, model: 8080 } as const;
const EVERYWHERE = "0.0.0.0";

export interface ClusterDirectories {
  /** One directory per bus user, and `nats` for the server. */
  readonly identities: string;
  /** Site file, tasks and runs, read by every service. */
  readonly shared: string;
}

/** Where things are as a service sees them, by the mounts of docker-compose.yml. */
const INSIDE = {
  /** Holds the one identity this service has. */
  identity: "/run/mortise",
  state: "/var/lib/mortise/state",
  jetstream: "/data",
} as const;
const NATS_HOST = "nats";

/** Writes identities, unless an earlier start did (P1), and the server's configuration. */
export async function writeSecrets(directories: ClusterDirectories): Promise<void> {
  const identities = (await readKept(directories.identities)) ?? createIdentities();
  for (const [user, identity] of identities)
    await writeIdentities(join(directories.identities, user), new Map([[user, identity]])); // P2
  const server = join(directories.identities, "nats");
  await mkdir(server, { recursive: true, mode: 0o700 });
  const settings = {
    host: EVERYWHERE,
    port: PORTS.nats,
    monitoringPort: PORTS.monitoring,
    storeDirectory: INSIDE.jetstream,
    identities,
  };
  await writePrivate(join(server, "nats.conf"), natsServerConfig(settings));
}

/** All identities or none: a start that was cut off before the last one had started no service. */
async function readKept(root: string): Promise<Identities | undefined> {
  if (!BUS_USERS.every((user) => existsSync(join(root, user, `${user}.json`)))) return undefined;
  const entries = BUS_USERS.map(async (user) => [user, await readIdentity(join(root, user), user)] as const);
  return new Map(await Promise.all(entries));
}

/** The site file of the cluster. `advertise` is each container's own name and comes from its command line. */
export async function writeClusterSite(
  directories: ClusterDirectories,
  tasksDirectory: string,
): Promise<void> {
  const site = {
    nats: { url: `nats://${NATS_HOST}:${PORTS.nats}` },
    identity: { directory: INSIDE.identity },
    state: { directory: INSIDE.state },
    rpc: { host: EVERYWHERE, port: PORTS.rpc },
    http: { host: EVERYWHERE, port: PORTS.http },
    proxy: { host: EVERYWHERE, port: PORTS.model },
    tasks: { directory: tasksDirectory },
    harness: { mini: miniHarness(projectRoot) },
    sandbox: { backend: "process" },
  };
  await writePrivate(join(directories.shared, "site.toml"), stringify(site));
}
