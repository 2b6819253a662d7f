/** Owns the shapes between a service and the process that runs it. */
import type { RunConfig, SiteConfig } from "@mortise/contracts";
import type { Bus } from "../bus/bus.js";
import type { Clock } from "../clock.js";
import type { Log } from "../log.js";
import type { Metrics } from "../metrics.js";
import type { ServiceBinding } from "../rpc/types.js";

export interface ServiceDefinition {
  /** As in `services/<name>`; also the name of its identity file. */
  readonly name: string;
  /** Whether the service belongs to one run and refuses to start without `--run`. */
  readonly needsRun: boolean;
  start(context: ServiceContext): Promise<Running>;
}

/** Everything a service is given. It opens no other connection to the outside by itself. */
export interface ServiceContext {
  readonly name: string;
  /** Unique among the live instances of the service. */
  readonly instance: string;
  readonly site: SiteConfig;
  /** Present for services that need a run. */
  readonly run?: RunConfig;
  readonly bus: Bus;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** For calls to other services. Never logged. */
  readonly bearer: string;
  /** A directory of the service's own, created with mode 0700. */
  readonly stateDirectory: string;
  /** Aborted when the process is asked to stop. */
  readonly signal: AbortSignal;
  /** Changes facts of this instance's presence entry once it is announced; before that, does nothing. */
  amendPresence(facts: Readonly<Record<string, string>>): Promise<void>;
  /** Ends the process with exit code 1 after logging; for errors after which going on would be wrong. */
  fail(error: unknown): void;
}

/** A service that has started. */
export interface Running {
  readonly bindings?: readonly ServiceBinding[];
  /** Facts other services look for in the presence bucket. */
  readonly presence?: Readonly<Record<string, string>>;
  isReady?(): boolean;
  /** CPU spent in engine or trainer compute, milliseconds, part of this process's busy time. */
  computeCpuMs?(): number;
  /** CPU by stage beyond what `stageCpu` was told, milliseconds. */
  stageCpuMs?(): Record<string, number>;
  /** CPU of ended children that only the service can see (cgroups), milliseconds; replaces what the OS says. */
  childrenCpuMs?(): number;
  /** Finishes or gives back what is under way; has 25 s. */
  drain(): Promise<void>;
}

/** One live instance, as the presence bucket holds it under `<service>.<instance>`. */
export interface ServicePresence {
  readonly service: string;
  readonly instance: string;
  /** "host:port", or empty for a service without RPC. */
  readonly rpcAddress: string;
  readonly httpAddress: string;
  readonly pid: number;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly facts: Readonly<Record<string, string>>;
}
