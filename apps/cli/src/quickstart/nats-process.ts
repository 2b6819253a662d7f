/**
 * Owns the nats-server process of a run: started on a free port of loopback, kept on that port ever after.
 * Does not own the configuration's content (provision/identity.ts).
 */
import { globSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { sleep } from "@mortise/kernel";
import { type Identities, natsServerConfig, writePrivate } from "../provision/identity.js";
import type { Supervisor } from "../supervisor/supervisor.js";
import type { RunPaths } from "./run-directory.js";

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
  readonly paths: RunPaths;
  readonly identities: Identities;
}

/** Starts the server under the supervisor. @returns its address, which survives restarts of the server. */
export async function startNatsServer(options: NatsProcessOptions): Promise<string> {
  const { paths, supervisor } = options;
  await rm(paths.natsPorts, { recursive: true, force: true });
  for (const directory of [paths.natsPorts, paths.logs, paths.jetstream])
    await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeConfig(options, ANY_PORT);
  supervisor.start({
    name: NATS_PROCESS,
    argv: [options.binary, "--config", paths.natsConfig],
    cwd: paths.directory,
    environment: process.env,
    logFile: join(paths.logs, `${NATS_PROCESS}.log`),
    errorFile: join(paths.logs, `${NATS_PROCESS}.err`),
    drainMs: DRAIN_MS,
    orphanGraceSeconds: ORPHAN_GRACE_SECONDS,
  });
  const url = await announcedAddress(options);
  // From now on a restarted server must come back where its clients look for it.
  await writeConfig(options, Number(new URL(url).port));
  return url;
}

function writeConfig({ paths, identities }: NatsProcessOptions, port: number): Promise<void> {
  const settings = { storeDirectory: paths.jetstream, portsDirectory: paths.natsPorts, port, identities };
  return writePrivate(paths.natsConfig, natsServerConfig(settings));
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
  throw new MortiseError({
    code: "MORTISE_OPERATOR_SERVICE_DOWN",
    message: `nats-server did not come up; see ${join(paths.logs, `${NATS_PROCESS}.err`)}.`,
    detail: { field: NATS_PROCESS },
  });
}
