/**
 * Owns the nats-server process of a site: started, and kept where its clients look for it ever after.
 * Does not own the configuration's content (provision/identity.ts).
 */
import { globSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { sleep } from "@mortise/kernel";
import { type Identities, natsServerConfig, writePrivate } from "../../provision/identity.js";
import type { Supervisor } from "../../supervisor/supervisor.js";
import type { SitePaths } from "../files/site-paths.js";

export const NATS_PROCESS = "nats-server";
const ANY_PORT = -1;
const START_TIMEOUT_MS = 20_000;
const LOOK_INTERVAL_MS = 20;
const DRAIN_MS = 10_000;
/** Services get this long to hand over what they hold before the bus goes, when the supervisor itself has died. */
const ORPHAN_GRACE_SECONDS = [30, 10] as const;

export interface NatsProcessOptions {
  readonly supervisor: Supervisor;
  readonly binary: string;
  readonly paths: SitePaths;
}

/**
 * Starts the server on a free port of loopback, with a configuration made for these identities.
 * @returns its address, which survives restarts of the server
 */
export async function startNatsServer(
  options: NatsProcessOptions & { readonly identities: Identities },
): Promise<string> {
  const { paths, identities } = options;
  const configure = (port: number) =>
    writePrivate(
      paths.natsConfig,
      natsServerConfig({
        storeDirectory: paths.jetstream,
        portsDirectory: paths.natsPorts,
        port,
        identities,
      }),
    );
  await prepare(paths);
  await configure(ANY_PORT);
  const url = await launch(options, []);
  // From now on a restarted server must come back where its clients look for it.
  await configure(Number(new URL(url).port));
  return url;
}

/** Starts the server with the site's own configuration file, at the address the site file names. */
export async function startSiteNatsServer(
  options: NatsProcessOptions,
  address: { readonly host: string; readonly port: number },
): Promise<void> {
  const { paths } = options;
  await prepare(paths);
  const place = ["--addr", address.host, "--port", String(address.port)];
  await launch(options, [...place, "--ports_file_dir", paths.natsPorts]);
}

async function prepare(paths: SitePaths): Promise<void> {
  await rm(paths.natsPorts, { recursive: true, force: true });
  for (const directory of [paths.natsPorts, paths.logs, paths.jetstream])
    await mkdir(directory, { recursive: true, mode: 0o700 });
}

async function launch(options: NatsProcessOptions, flags: readonly string[]): Promise<string> {
  const { supervisor, paths, binary } = options;
  supervisor.start({
    name: NATS_PROCESS,
    argv: [binary, "--config", paths.natsConfig, ...flags],
    cwd: paths.directory,
    environment: process.env,
    logFile: join(paths.logs, `${NATS_PROCESS}.log`),
    errorFile: join(paths.logs, `${NATS_PROCESS}.err`),
    drainMs: DRAIN_MS,
    orphanGraceSeconds: ORPHAN_GRACE_SECONDS,
  });
  return announcedAddress(options);
}

/** The server writes the ports it took into a file once it listens. */
async function announcedAddress({ paths, supervisor }: NatsProcessOptions): Promise<string> {
  for (let waited = 0; waited < START_TIMEOUT_MS; waited += LOOK_INTERVAL_MS) {
    const [file] = globSync("*.ports", { cwd: paths.natsPorts });
    const content =
      file === undefined ? "" : await readFile(join(paths.natsPorts, file), "utf8").catch(() => "");
    if (content.endsWith("}")) return (JSON.parse(content) as { nats: [string] }).nats[0];
    if (supervisor.status().some(({ name, phase }) => name === NATS_PROCESS && phase === "failed")) break;
    await sleep(LOOK_INTERVAL_MS);
  }
  const errors = join(paths.logs, `${NATS_PROCESS}.err`);
  const said = (await readFile(errors, "utf8").catch(() => "")).trimEnd().split("\n").at(-1);
  throw new MortiseError({
    code: "MORTISE_OPERATOR_SERVICE_DOWN",
    message: `nats-server did not come up${said ? `: ${said}` : ""}; see ${errors}.`,
    detail: { field: NATS_PROCESS },
  });
}
