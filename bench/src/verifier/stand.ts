/**
 * Owns what the benchmark of verifications runs on: a NATS server, a sandbox-manager on runc and a verifier as processes
 * of their own, and the verdicts. Everything it starts it ends.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import {
  CONSUMERS,
  KV_BUCKETS,
  OBJECT_BUCKETS,
  STREAMS,
  subject,
  type Verdict,
  VerdictSchema,
  VerifyWorkSchema,
} from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology } from "@mortise/kernel";
import { endProcess, type NatsFixture, startNats, whenReady } from "@mortise/testkit";

const RUN = "bench";
const mainOf = (service: string) =>
  fileURLToPath(new URL(`../../../services/${service}/dist/main.js`, import.meta.url));

export interface TaskName {
  readonly id: string;
  readonly digest: string;
}

export interface StandOptions {
  /** Directory of task directories. */
  readonly tasks: string;
  /** Verifications at once. */
  readonly concurrency: number;
}

export class VerifierStand {
  readonly #directory: string;
  readonly #nats: NatsFixture;
  readonly #bus: Bus;
  readonly #services: readonly ChildProcess[];
  readonly #waiting = new Map<string, (verdict: Verdict) => void>();
  #serial = 0;

  private constructor(directory: string, nats: NatsFixture, bus: Bus, services: readonly ChildProcess[]) {
    this.#directory = directory;
    this.#nats = nats;
    this.#bus = bus;
    this.#services = services;
  }

  static async start({ tasks, concurrency }: StandOptions): Promise<VerifierStand> {
    const directory = mkdtempSync(path.join(tmpdir(), "mortise-bench-verifier-"));
    const nats = await startNats({ withUsers: true });
    const { user, password } = nats.identity("admin");
    const log = createLog({ service: "bench", level: "error" });
    const bus = await connectBus({ url: nats.url, user, password, name: "bench", log });
    await ensureTopology(bus, {
      streams: STREAMS,
      consumers: CONSUMERS,
      kv: KV_BUCKETS,
      objects: OBJECT_BUCKETS,
    });
    const identity = path.join(directory, "identity");
    mkdirSync(identity);
    for (const name of ["sandbox-manager", "verifier"] as const)
      writeFileSync(path.join(identity, `${name}.json`), JSON.stringify(nats.identity(name)), {
        mode: 0o600,
      });
    const site = path.join(directory, "site.toml");
    writeFileSync(
      site,
      `nats.url = "${nats.url}"
identity.directory = "${identity}"
state.directory = "${path.join(directory, "state")}"
tasks.directory = "${path.resolve(tasks)}"
sandbox.backend = "runc"
verifier.concurrency = ${concurrency}
`,
    );
    const services = [await startService("sandbox-manager", site), await startService("verifier", site)];
    const stand = new VerifierStand(directory, nats, bus, services);
    await bus.follow({
      stream: "REWARDS",
      filters: [`mortise.v1.reward.${RUN}.*`],
      from: "first",
      schema: VerdictSchema,
      onMessage: (verdict) => stand.#waiting.get(verdict.trial)?.(verdict),
    });
    return stand;
  }

  /** The verdict on a task nobody changed. */
  async verify(task: TaskName): Promise<Verdict> {
    const trial = `t${++this.#serial}`;
    const verdict = new Promise<Verdict>((resolve) => this.#waiting.set(trial, resolve));
    await this.#bus.publish({
      subject: subject.verify(RUN, trial),
      schema: VerifyWorkSchema,
      message: { run: RUN, trial, task },
      dedupeId: `${RUN}/${trial}/verify`,
    });
    return verdict;
  }

  async stop(): Promise<void> {
    for (const service of this.#services.toReversed()) {
      await endProcess(service);
    }
    await this.#bus.close();
    await this.#nats.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

async function startService(name: string, site: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [mainOf(name), "--site", site], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  await whenReady(child, name);
  return child;
}
