/**
 * Owns a site's processes on this machine from nothing to stopped: the bus with its topology, the services, the
 * connection to look at them, and the end of all of it in order.
 * Does not own what runs do there or report (quickstart/, commands/run.ts).
 *
 * K1  When `stop` has resolved no process of the site is left, whatever state the start had reached.
 * K2  A process that was given up ends the site with its own words; nothing is waited for in vain.
 */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  CONSUMERS,
  KV_BUCKETS,
  MortiseError,
  OBJECT_BUCKETS,
  runConsumers,
  SERVICE_NAMES,
  type ServiceName,
  STREAMS,
} from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology } from "@mortise/kernel";
import {
  createIdentities,
  type Identities,
  identitiesFromUrl,
  readIdentities,
  writeIdentities,
} from "../../provision/identity.js";
import type { NatsServer } from "../../provision/nats-server/provision.js";
import { type ProcessSpec, Supervisor } from "../../supervisor/supervisor.js";
import { writeNatsUsers } from "../files/nats-conf.js";
import type { SitePaths } from "../files/site-paths.js";
import type { ProjectPaths } from "../project-paths.js";
import { startNatsServer, startSiteNatsServer } from "./nats-process.js";
import { Presences } from "./presences.js";
import { RUN_SERVICES, STOP_ORDER, serviceSpec } from "./services.js";

const START_TIMEOUT_MS = 60_000;
/** What a failed process said last, for the error. */
const TAIL_CHARACTERS = 2_000;

export interface NatsAddress {
  readonly host: string;
  readonly port: number;
}

export interface ClusterOptions {
  readonly project: ProjectPaths;
  readonly paths: SitePaths;
  readonly nats: NatsServer;
  /** Where a nats-server is started with the site's own configuration file; on any free port when absent. */
  readonly natsAddress?: NatsAddress;
  readonly note: (line: string) => void;
}

export class LocalCluster {
  readonly supervisor: Supervisor;
  readonly #options: ClusterOptions;
  readonly #fatal = new AbortController();
  #identities: Identities | undefined;
  #bus: Bus | undefined;
  #presences: Presences | undefined;
  natsUrl = "";

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.supervisor = new Supervisor({
      onRestart: (name, reason, delayMs) =>
        options.note(`${name} ended (${reason}); starting it again in ${delayMs} ms`),
      onGaveUp: (name, reason, spec) => void this.#giveUp(name, reason, spec),
      onFault: (error) => this.#fatal.abort(error),
    });
  }

  /** Aborted, with the error as its reason, when the run cannot go on (K2). */
  get fatal(): AbortSignal {
    return this.#fatal.signal;
  }

  /** For looking, with the observer's permissions. */
  get bus(): Bus {
    return required(this.#bus, "startBus");
  }

  get presences(): Presences {
    return required(this.#presences, "startBus");
  }

  get bearer(): string {
    return required(this.#identities?.get("observer"), "startBus").bearer;
  }

  /** Starts or finds the NATS server, makes what the runs store there, and connects. */
  async startBus(runIds: readonly string[]): Promise<void> {
    const { paths, nats } = this.#options;
    await mkdir(paths.logs, { recursive: true, mode: 0o700 });
    const created = nats.kind === "running" ? identitiesFromUrl(nats.url) : createIdentities();
    this.#identities = (await readIdentities(paths.identity)) ?? created;
    await writeIdentities(paths.identity, this.#identities);
    this.natsUrl = await this.#serveBus(this.#identities);
    const admin = await this.#connect("admin");
    try {
      const consumers = [...CONSUMERS, ...runIds.flatMap(runConsumers)];
      await ensureTopology(admin, { streams: STREAMS, consumers, kv: KV_BUCKETS, objects: OBJECT_BUCKETS });
    } finally {
      await admin.close();
    }
    this.#bus = await this.#connect("observer");
    this.#presences = await Presences.watch(this.#bus);
  }

  /** Starts every service for the run file and resolves when all are present on the bus. */
  async startServices(runFile: string): Promise<void> {
    await this.#start(SERVICE_NAMES, runFile);
  }

  /** Starts services that belong to no run, and no others; rejects with the signal's reason when that comes first. */
  async startShared(
    names: readonly Exclude<ServiceName, "scheduler" | "trainer">[],
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#start(names, "", signal);
  }

  /** Replaces the services of one run by those of another; the shared ones go on. */
  async switchRun(runFile: string): Promise<void> {
    const own = SERVICE_NAMES.filter((name) => RUN_SERVICES.has(name));
    for (const name of own) await this.supervisor.stop(name);
    await this.#start(own, runFile);
  }

  /** K1 */
  async stop(): Promise<void> {
    await this.#presences?.stop().catch(() => {});
    await this.#bus?.close().catch(() => {});
    await this.supervisor.stopInOrder(STOP_ORDER);
  }

  pidOf(name: string): number | undefined {
    return this.supervisor.status().find((status) => status.name === name)?.pid;
  }

  async #start(names: readonly ServiceName[], runFile: string, signal?: AbortSignal): Promise<void> {
    const { project, paths } = this.#options;
    const places = { project, directory: paths.directory, logs: paths.logs, siteFile: paths.site, runFile };
    for (const name of names) this.supervisor.start(serviceSpec(name, places));
    const limit = AbortSignal.timeout(START_TIMEOUT_MS);
    const stop = AbortSignal.any(signal === undefined ? [this.fatal] : [this.fatal, signal]);
    try {
      const until = AbortSignal.any([stop, limit]);
      await this.presences.awaitProcesses(names, (name) => this.pidOf(name), until);
    } catch (error) {
      if (!limit.aborted || stop.aborted) throw error;
      const missing = names.filter((name) => this.presences.newest(name) === undefined).join(", ");
      throw down(missing, `not present on the bus after ${START_TIMEOUT_MS / 1000} s`, join(paths.logs));
    }
  }

  /** @returns the address of the bus, without a user */
  async #serveBus(identities: Identities): Promise<string> {
    const { nats, paths, natsAddress } = this.#options;
    if (nats.kind === "running") return withoutUser(nats.url);
    const options = { supervisor: this.supervisor, binary: nats.path, paths };
    if (natsAddress === undefined) return startNatsServer({ ...options, identities });
    await writeNatsUsers(paths, identities);
    await startSiteNatsServer(options, natsAddress);
    return `nats://${natsAddress.host}:${natsAddress.port}`;
  }

  async #connect(user: "admin" | "observer"): Promise<Bus> {
    const identity = required(this.#identities?.get(user), "startBus");
    const log = createLog({ service: "cli", level: "error" });
    return connectBus({
      url: this.natsUrl,
      user: identity.user,
      password: identity.password,
      name: `cli.${user}`,
      log,
    });
  }

  async #giveUp(name: string, reason: string, spec: ProcessSpec): Promise<void> {
    const said = await readFile(spec.errorFile, "utf8").catch(() => "");
    this.#fatal.abort(
      down(
        name,
        `${reason}${said === "" ? "" : `\n${said.slice(-TAIL_CHARACTERS).trimEnd()}`}`,
        spec.logFile,
      ),
    );
  }
}

function down(name: string, reason: string, where: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_SERVICE_DOWN",
    message: `${name}: ${reason}\n  log: ${where}`,
    detail: { field: name },
  });
}

/** The user is in the identity files; an address in the site file holds no secret. */
export function withoutUser(address: string): string {
  const url = new URL(address.includes("://") ? address : `nats://${address}`);
  return `${url.protocol}//${url.host}`;
}

function required<T>(value: T | undefined, step: string): T {
  if (value === undefined) throw new Error(`${step} comes first`);
  return value;
}
