/**
 * Owns the processes of a run on one machine: starts them, starts the dead again, stops them in order, leaves
 * none behind. Does not know what they do, nor whether they are ready (presence on the bus says that).
 */
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { Actor, type Clock, systemClock } from "@mortise/kernel";
import { spawnGuarded, sweepGroup } from "./guard.js";
import {
  initialState,
  type Phase,
  type ProcessEffect,
  type ProcessMessage,
  type ProcessState,
  reduceProcess,
} from "./supervised-process.js";

export interface ProcessSpec {
  readonly name: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Standard output is appended here. */
  readonly logFile: string;
  /** Standard error is appended here; the reason of a failed start is its end. */
  readonly errorFile: string;
  /** Milliseconds between SIGTERM and SIGKILL when stopped. */
  readonly drainMs: number;
  /** Seconds it may go on after the supervisor's death. */
  readonly orphanGraceSeconds: readonly [untilTerm: number, untilKill: number];
}

export interface ProcessStatus {
  readonly name: string;
  readonly phase: Phase;
  readonly pid: number | undefined;
  readonly restarts: number;
}

export interface SupervisorEvents {
  /** It died and will be started again. */
  onRestart(name: string, reason: string, delayMs: number): void;
  /** It will not be started again. */
  onGaveUp(name: string, reason: string, spec: ProcessSpec): void;
  /** Something in the supervisor itself went wrong. */
  onFault(error: unknown): void;
}

interface Entry {
  readonly spec: ProcessSpec;
  readonly actor: Actor<ProcessState, ProcessMessage, ProcessEffect>;
  readonly ended: PromiseWithResolvers<void>;
  child: ChildProcess | undefined;
}

export class Supervisor {
  readonly #clock: Clock;
  readonly #events: SupervisorEvents;
  readonly #entries = new Map<string, Entry>();

  constructor(events: SupervisorEvents, clock: Clock = systemClock) {
    this.#events = events;
    this.#clock = clock;
  }

  /** Starts a process and keeps it running until it is stopped or given up. */
  start(spec: ProcessSpec): void {
    const actor = new Actor<ProcessState, ProcessMessage, ProcessEffect>({
      name: `process:${spec.name}`,
      initial: initialState(spec.drainMs),
      reduce: reduceProcess,
      perform: (effect) => this.#perform(entry, effect),
      onFault: (error) => this.#events.onFault(error),
    });
    const entry: Entry = { spec, actor, ended: Promise.withResolvers(), child: undefined };
    this.#entries.set(spec.name, entry);
    actor.send({ kind: "start", atMs: this.#clock.now() });
  }

  status(): ProcessStatus[] {
    return [...this.#entries.values()].map(({ spec, actor, child }) => ({
      name: spec.name,
      phase: actor.state.phase,
      pid: child?.pid,
      restarts: actor.state.restarts,
    }));
  }

  /** Stops one process. Resolves when it and everything in its process group is gone. */
  async stop(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    entry.actor.send({ kind: "stop" });
    await entry.ended.promise;
  }

  /** Stops groups one after another, the processes of a group together; then whatever no group named. */
  async stopInOrder(groups: readonly (readonly string[])[]): Promise<void> {
    for (const group of groups) await Promise.all(group.map((name) => this.stop(name)));
    await Promise.all([...this.#entries.keys()].map((name) => this.stop(name)));
  }

  /** Kills everything at once; for the second Ctrl-C. */
  killAll(): void {
    for (const entry of this.#entries.values()) {
      entry.actor.send({ kind: "stop" });
      entry.actor.send({ kind: "drain-over" });
    }
  }

  #perform(entry: Entry, effect: ProcessEffect): void {
    switch (effect.kind) {
      case "spawn":
        this.#spawn(entry);
        return;
      case "wait":
        this.#clock.after(effect.delayMs, () =>
          entry.actor.send({ kind: "delay-over", atMs: this.#clock.now() }),
        );
        return;
      case "watch-drain": {
        const cancel = this.#clock.after(effect.delayMs, () => entry.actor.send({ kind: "drain-over" }));
        void entry.ended.promise.then(cancel);
        return;
      }
      case "signal":
        entry.child?.kill(effect.signal);
        return;
      case "restarting":
        this.#events.onRestart(entry.spec.name, describeEnd(effect), effect.delayMs);
        return;
      case "gave-up":
        this.#events.onGaveUp(entry.spec.name, describeEnd(effect), entry.spec);
        return;
      case "ended":
        entry.ended.resolve();
        return;
    }
  }

  #spawn(entry: Entry): void {
    const { spec } = entry;
    const stdout = openSync(spec.logFile, "a", 0o600);
    const stderr = openSync(spec.errorFile, "a", 0o600);
    const child = spawnGuarded({ ...spec, stdout, stderr });
    closeSync(stdout);
    closeSync(stderr);
    entry.child = child;
    // The pipe's only purpose is to close when this process is gone; a child that ends first is no error.
    child.stdin?.on("error", () => {});
    const onEnd = (code: number | null, signal: string | null) => {
      if (child.pid !== undefined) sweepGroup(child.pid);
      child.stdin?.destroy();
      entry.child = undefined;
      entry.actor.send({ kind: "exited", code, signal, atMs: this.#clock.now() });
    };
    child.once("exit", onEnd);
    child.once("error", (error) => {
      this.#events.onFault(error);
      // Without a pid nothing was started, and no exit will follow.
      if (child.pid === undefined) onEnd(null, null);
    });
  }
}

function describeEnd({
  code,
  signal,
}: {
  readonly code: number | null;
  readonly signal: string | null;
}): string {
  return signal === null ? `exit code ${code}` : `signal ${signal}`;
}
