/**
 * Owns the life of a service process: settings, connections, readiness, drain, exit code.
 * Does not contain any service. `main.ts` of a service is `await runService(definition)`.
 *
 * S1  SIGTERM and SIGINT drain: work under way ends or is given back, then presence goes, then the process.
 * S2  An operator's mistake ends with exit code 2 and its code and fix on stderr; any other failure with 1.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { type Bus, connectBus } from "../bus/bus.js";
import { systemClock } from "../clock.js";
import { fromUnknown, operatorsError } from "../errors.js";
import { createLog, type Log, withoutCredentials } from "../log.js";
import { Metrics } from "../metrics.js";
import { RpcServer } from "../rpc/server.js";
import { stageCpu } from "../stage-cpu.js";
import { startTracing } from "../telemetry.js";
import { type CpuAnswer, StatusServer } from "./http.js";
import { Presence } from "./presence.js";
import { readSettings, type Settings } from "./settings.js";
import type { Running, ServiceContext, ServiceDefinition } from "./types.js";

const DRAIN_LIMIT_MS = 25_000;
const EXIT_FAILURE = 1;
const EXIT_OPERATOR = 2;

/** Runs a service until the process is told to stop. Returns only by ending the process. */
export async function runService(
  definition: ServiceDefinition,
  argv: readonly string[] = process.argv.slice(2),
): Promise<void> {
  let service: ServiceProcess | undefined;
  try {
    service = new ServiceProcess(definition, await readSettings(definition, argv));
    await service.start();
  } catch (error) {
    // A start that was cut short by a signal has not failed; the shutdown under way ends the process.
    if (service?.isStopping !== true) refuseToStart(error);
  }
}

/** S2 */
function refuseToStart(error: unknown): never {
  const operators = operatorsError(error);
  const isOperators = operators !== undefined;
  const known = operators ?? fromUnknown(error, "MORTISE_TRANSPORT_INTERNAL");
  const cause = isOperators || known.cause === undefined ? "" : `  cause: ${describe(known.cause)}\n`;
  process.stderr.write(withoutCredentials(`${known.code}: ${known.message}\n  fix: ${known.fix}\n${cause}`));
  process.exit(isOperators ? EXIT_OPERATOR : EXIT_FAILURE);
}

function describe(cause: unknown): string {
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
}

class ServiceProcess {
  readonly #definition: ServiceDefinition;
  readonly #settings: Settings;
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #stop = new AbortController();
  readonly #stopTracing: () => Promise<void>;
  #bus: Bus | undefined;
  #running: Running | undefined;
  #rpc: RpcServer | undefined;
  #http: StatusServer | undefined;
  #presence: Presence | undefined;

  constructor(definition: ServiceDefinition, settings: Settings) {
    const { telemetry } = settings.site;
    this.#definition = definition;
    this.#settings = settings;
    this.#log = createLog({ service: definition.name, level: telemetry.logLevel }).child({
      instance: settings.instance,
    });
    this.#metrics = new Metrics(definition.name);
    this.#metrics.exposeProcess(stageCpu);
    this.#stopTracing = startTracing({ service: definition.name, ...telemetry });
  }

  get isStopping(): boolean {
    return this.#stop.signal.aborted;
  }

  async start(): Promise<void> {
    this.#catchFaults();
    // Both may come, twice even: a terminal tells the whole process group, and then the supervisor does.
    process.on("SIGTERM", () => this.#shutDown("SIGTERM"));
    process.on("SIGINT", () => this.#shutDown("SIGINT"));
    this.#bus = await this.#connect();
    const context = await this.#context(this.#bus);
    this.#running = await this.#definition.start(context);
    await this.#serve(this.#running, context.bearer);
    await this.#announce(this.#bus, this.#running);
    this.#log.info({
      event: "service.ready",
      ready: true,
      pid: process.pid,
      rpc: this.#rpcAddress(),
      http: this.#httpAddress(),
    });
  }

  #connect(): Promise<Bus> {
    const { site, identity, instance } = this.#settings;
    return connectBus({
      url: site.nats.url,
      user: identity.user,
      password: identity.password,
      name: `${this.#definition.name}.${instance}`,
      log: this.#log,
      onFault: (error) => this.#fail(error),
    });
  }

  async #context(bus: Bus): Promise<ServiceContext> {
    const { site, run, identity, instance } = this.#settings;
    const stateDirectory = join(site.state.directory, this.#definition.name);
    await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
    void bus.connection.closed().then((error) => {
      if (!this.isStopping) this.#fail(error ?? new Error("the NATS connection was closed"));
    });
    return {
      name: this.#definition.name,
      instance,
      site,
      ...(run === undefined ? {} : { run }),
      bus,
      log: this.#log,
      clock: systemClock,
      metrics: this.#metrics,
      bearer: identity.bearer,
      stateDirectory,
      signal: this.#stop.signal,
      amendPresence: async (facts) => this.#presence?.amend(facts),
      fail: (error) => this.#fail(error),
    };
  }

  async #serve(running: Running, bearer: string): Promise<void> {
    const { rpc, http } = this.#settings.site;
    if (running.bindings !== undefined) {
      this.#rpc = await RpcServer.start({
        host: rpc.host,
        port: rpc.port,
        bearer,
        bindings: running.bindings,
      });
    }
    this.#http = await StatusServer.start({
      host: http.host,
      port: http.port,
      metrics: this.#metrics,
      isReady: () => this.#isReady(),
      cpu: () => this.#cpu(),
    });
  }

  async #announce(bus: Bus, running: Running): Promise<void> {
    this.#presence = await Presence.announce(bus, {
      service: this.#definition.name,
      instance: this.#settings.instance,
      rpcAddress: this.#rpcAddress(),
      httpAddress: this.#httpAddress(),
      pid: process.pid,
      startedAt: systemClock.now(),
      facts: running.presence ?? {},
    });
  }

  #isReady(): boolean {
    return !this.isStopping && this.#presence !== undefined && (this.#running?.isReady?.() ?? true);
  }

  #cpu(): CpuAnswer {
    const { busyMs, childrenMs, byStage } = stageCpu.report();
    const children = this.#running?.childrenCpuMs?.() ?? childrenMs;
    return {
      busyMs,
      ...(children === undefined ? {} : { childrenMs: children }),
      computeMs: this.#running?.computeCpuMs?.() ?? 0,
      stages: { ...byStage, ...this.#running?.stageCpuMs?.() },
    };
  }

  #rpcAddress(): string {
    if (this.#rpc === undefined) return "";
    const { host, advertise } = this.#settings.site.rpc;
    return `${advertise ?? host}:${this.#rpc.port}`;
  }

  #httpAddress(): string {
    const { rpc, http } = this.#settings.site;
    return `${rpc.advertise ?? http.host}:${this.#http?.port}`;
  }

  /** S1 */
  async #shutDown(signal: string): Promise<void> {
    if (this.isStopping) return;
    this.#log.info({ event: "service.draining", signal });
    this.#stop.abort();
    const limit = setTimeout(() => {
      this.#log.error({ event: "service.drain-timeout", limitMs: DRAIN_LIMIT_MS });
      process.exit(EXIT_FAILURE);
    }, DRAIN_LIMIT_MS);
    try {
      await this.#presence?.amend({ draining: "true" });
      await this.#running?.drain();
      await this.#rpc?.stop();
      await this.#presence?.withdraw();
      await this.#http?.stop();
      await this.#bus?.close();
      await this.#stopTracing();
    } catch (error) {
      this.#log.error({ event: "service.drain-failed", err: error });
      process.exit(EXIT_FAILURE);
    }
    clearTimeout(limit);
    this.#log.info({ event: "service.stopped" });
    process.exit(0);
  }

  #fail(error: unknown): void {
    const isOperators = error instanceof MortiseError && error.boundary === "operator";
    this.#log.fatal({ event: "service.failed", err: error });
    process.exit(isOperators ? EXIT_OPERATOR : EXIT_FAILURE);
  }

  #catchFaults(): void {
    process.on("uncaughtException", (error) => this.#fail(error));
    process.on("unhandledRejection", (error) => this.#fail(error));
  }
}
