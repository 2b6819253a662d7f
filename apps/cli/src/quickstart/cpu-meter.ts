/**
 * Owns the trial overhead: busy CPU of all processes of a run, less the engine's and trainer's compute, per ended
 * trial, and its split by stage. Services tell their own time over HTTP; nats-server and this process are read
 * from proc(5). A service that was killed keeps what it had told last.
 *
 * The split is by what services attribute; what nobody claims is shown as its process.
 */
import type { CpuAnswer, ServicePresence } from "@mortise/kernel";
import { processTreeCpuMs } from "./process-cpu.js";

const ASK_TIMEOUT_MS = 2_000;

/** CPU of one process so far, milliseconds. */
export interface Reading {
  readonly busyMs: number;
  readonly childrenMs: number;
  readonly computeMs: number;
  readonly stages: Readonly<Record<string, number>>;
}

export interface Overhead {
  readonly totalMs: number;
  readonly computeMs: number;
  readonly perTrialMs: number;
  /** Milliseconds per ended trial, by stage or process, the greatest first. */
  readonly parts: readonly (readonly [name: string, perTrialMs: number])[];
}

export class CpuMeter {
  /** By "<service>/<instance>"; an instance is one process. */
  readonly #readings = new Map<string, Reading>();

  /** Takes up what an earlier start of the same run had measured. */
  constructor(carried: Readonly<Record<string, Reading>> = {}) {
    for (const [key, reading] of Object.entries(carried)) this.#readings.set(key, reading);
  }

  /** Asks every live service once. One that does not answer keeps its last reading. */
  async sampleServices(instances: readonly ServicePresence[]): Promise<void> {
    await Promise.all(instances.map((instance) => this.#ask(instance)));
  }

  /** Reads a process that tells nothing itself, with the children it has waited for. */
  sampleProcess(name: string, pid: number): void {
    const busyMs = processTreeCpuMs(pid);
    if (busyMs !== undefined)
      this.#readings.set(`${name}/${pid}`, { busyMs, childrenMs: 0, computeMs: 0, stages: {} });
  }

  /** Reads this process alone: the children it waits for are supervised, and counted as themselves. */
  sampleSelf(): void {
    const { user, system } = process.cpuUsage();
    this.#readings.set(`cli/${process.pid}`, {
      busyMs: (user + system) / 1000,
      childrenMs: 0,
      computeMs: 0,
      stages: {},
    });
  }

  readings(): Record<string, Reading> {
    return Object.fromEntries(this.#readings);
  }

  async #ask({ service, instance, httpAddress }: ServicePresence): Promise<void> {
    try {
      const response = await fetch(`http://${httpAddress}/cpu`, {
        signal: AbortSignal.timeout(ASK_TIMEOUT_MS),
      });
      const { busyMs, childrenMs = 0, computeMs, stages } = (await response.json()) as CpuAnswer;
      this.#readings.set(`${service}/${instance}`, { busyMs, childrenMs, computeMs, stages });
    } catch {
      // It is starting, stopping or dead: its last reading stands, and presence will tell of its successor.
    }
  }
}

/** The overhead of `trials` ended trials; undefined before the first. */
export function overheadOf(
  readings: Readonly<Record<string, Reading>>,
  trials: number,
): Overhead | undefined {
  if (trials === 0) return undefined;
  const parts = new Map<string, number>();
  const add = (name: string, ms: number) => parts.set(name, (parts.get(name) ?? 0) + ms);
  let totalMs = 0;
  let computeMs = 0;
  for (const [key, reading] of Object.entries(readings)) {
    const [service] = key.split("/") as [string];
    const processMs = reading.busyMs + reading.childrenMs;
    const attributed = Object.values(reading.stages).reduce((sum, ms) => sum + ms, 0);
    totalMs += processMs;
    computeMs += reading.computeMs;
    for (const [stage, ms] of Object.entries(reading.stages)) add(stage, ms);
    add(`${service} (not attributed)`, Math.max(0, processMs - reading.computeMs - attributed));
  }
  const perTrial = [...parts].map(([name, ms]) => [name, ms / trials] as const).sort((a, b) => b[1] - a[1]);
  return { totalMs, computeMs, perTrialMs: (totalMs - computeMs) / trials, parts: perTrial };
}
