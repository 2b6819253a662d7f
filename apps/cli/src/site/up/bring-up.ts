/**
 * Owns a site's shared services from one command to the end of it: nobody else has them, the ports are free, all come
 * up, all are drained in order. Does not own how that looks (view.ts) nor the services (../local-cluster.ts).
 */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { MortiseError, type SiteConfig } from "@mortise/contracts";
import { readSiteConfig, sleep } from "@mortise/kernel";
import { readTaskIndex } from "@mortise/tasks";
import { assertFreeSpace } from "../../free-space.js";
import { readIdentities } from "../../provision/identity.js";
import { type NatsServer, provisionNatsServer } from "../../provision/nats-server/provision.js";
import { readGreeting } from "../../provision/nats-server/version.js";
import { pathsOfSite, type SitePaths } from "../files/site-paths.js";
import { Interrupted, listenForInterrupts } from "../interrupts.js";
import { SHARED_SERVICES } from "../open-site.js";
import { type Owner, takeOwnership } from "../owner-lock.js";
import { awaitFreePorts, type WantedPort } from "../ports.js";
import { LocalCluster, type NatsAddress } from "../processes/local-cluster.js";
import { projectPaths } from "../project-paths.js";
import type { SiteView } from "./view.js";

const REFRESH_MS = 1_000;
/** What a killed owner leaves ends by itself: the services within 30 s, the bus 10 s later. */
const ORPHAN_PATIENCE_MS = 60_000;

/**
 * Starts the shared services and stays until it is interrupted, which is how it ends well: everything is drained then.
 * @throws MORTISE_OPERATOR_SITE_UP, MORTISE_OPERATOR_PORT_IN_USE, and MORTISE_OPERATOR_SERVICE_DOWN when a service
 *   cannot be kept up
 */
export async function keepSiteUp(siteFile: string, view: SiteView): Promise<void> {
  try {
    await withSiteUp(siteFile, view, async (stop, show) => {
      for (;;) {
        show();
        await sleep(REFRESH_MS, undefined, stop);
      }
    });
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
  }
}

/**
 * Starts the shared services, calls `use`, and drains everything whatever becomes of it. `use` is given a signal that is
 * aborted when it is interrupted or a service cannot be kept up, and what shows the site as it is now.
 * @throws as `keepSiteUp`, and what `use` throws
 */
export async function withSiteUp<T>(siteFile: string, view: SiteView, use: Use<T>): Promise<T> {
  const site = await readSiteConfig(siteFile);
  const paths = pathsOfSite(siteFile, site);
  assertOwnPorts(site);
  readTaskIndex(site.tasks.directory);
  await mkdir(paths.state, { recursive: true, mode: 0o700 });
  await assertFreeSpace(paths.state);
  const ownership = await takeOwnership(paths.owner, (owner) => isUp(siteFile, owner));
  try {
    const nats = await natsOf(site, paths, view);
    if (ownership.hadDied)
      view.note("an earlier `site up` ended without draining; waiting for what it may have left");
    await awaitFreePorts(portsOf(site, nats), ownership.hadDied ? ORPHAN_PATIENCE_MS : 0);
    return await serve({ site, paths, nats, view, onUp: () => ownership.markReady(), use });
  } finally {
    await ownership.release();
  }
}

type Use<T> = (stop: AbortSignal, show: () => void) => Promise<T>;

interface Served<T> {
  readonly site: SiteConfig;
  readonly paths: SitePaths;
  readonly nats: SiteNats;
  readonly view: SiteView;
  readonly onUp: () => Promise<void>;
  readonly use: Use<T>;
}

async function serve<T>({ site, paths, nats, view, onUp, use }: Served<T>): Promise<T> {
  const cluster = new LocalCluster({
    project: projectPaths(),
    paths,
    nats: nats.server,
    ...(nats.address === undefined ? {} : { natsAddress: nats.address }),
    note: (line) => view.note(line),
  });
  const interrupts = listenForInterrupts(() => cluster.supervisor.killAll());
  const stop = AbortSignal.any([cluster.fatal, interrupts.signal]);
  const show = (isUp: boolean) =>
    view.update({
      siteFile: paths.site,
      site,
      isUp,
      natsVersion: nats.server.version,
      processes: cluster.supervisor.status(),
      presences: isUp ? cluster.presences.all() : [],
    });
  try {
    await cluster.startBus([]);
    show(false);
    await cluster.startShared(SHARED_SERVICES, stop);
    await onUp();
    return await use(stop, () => show(true));
  } catch (error) {
    if (error instanceof Interrupted) view.note(`${error.message}; draining`);
    throw error;
  } finally {
    view.end();
    await cluster.stop();
    interrupts.dispose();
  }
}

interface SiteNats {
  readonly server: NatsServer;
  /** Where it is to be started; absent when it runs already. */
  readonly address: NatsAddress | undefined;
}

/** The site's own server when nats.conf lies beside its file; else the operator's, which has to be running. */
async function natsOf({ nats }: SiteConfig, paths: SitePaths, view: SiteView): Promise<SiteNats> {
  if ((await readIdentities(paths.identity)) === undefined)
    throw new MortiseError({
      code: "MORTISE_CONFIG_INVALID",
      message: `identity.directory is ${paths.identity}, which does not hold an identity of every service.`,
      fix: "Run `mortise site init` in the site's directory again: it adds what is missing and keeps the rest.",
      detail: { field: "identity.directory" },
    });
  if (!existsSync(paths.natsConfig)) {
    const { version } = await readGreeting(nats.url);
    return { server: { kind: "running", url: nats.url, version, notes: [] }, address: undefined };
  }
  const { hostname, port } = new URL(nats.url.includes("://") ? nats.url : `nats://${nats.url}`);
  const server = await provisionNatsServer({
    cacheDirectory: projectPaths().cache,
    environment: { PATH: process.env.PATH },
    onProgress: (line) => view.note(line),
  });
  return { server, address: { host: hostname, port: Number(port || "4222") } };
}

function portsOf({ proxy }: SiteConfig, { address }: SiteNats): WantedPort[] {
  const wanted = [
    ...(address === undefined ? [] : [{ field: "nats.url", ...address }]),
    { field: "proxy.port", host: proxy.host, port: proxy.port },
  ];
  return wanted.filter(({ port }) => port !== 0);
}

/** All services of one machine read one site file: of a fixed port the first would leave nothing to the others. */
function assertOwnPorts({ rpc, http }: SiteConfig): void {
  const [field] = Object.entries({ "rpc.port": rpc.port, "http.port": http.port }).flatMap(([name, port]) =>
    port === 0 ? [] : name,
  );
  if (field === undefined) return;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `${field} is one port for all services of this machine.`,
    fix: `Remove ${field}, or set it to 0: each service takes a free one and tells the others.`,
    detail: { field },
  });
}

function isUp(siteFile: string, { pid, since }: Owner): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_SITE_UP",
    message: `${siteFile} is up since ${since} (process ${pid}).`,
    fix: `Use it as it is, or end it: mortise site down --site ${siteFile}`,
    detail: { field: "--site" },
  });
}
