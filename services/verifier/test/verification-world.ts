/**
 * Owns what tests of real verifications share: a NATS server, a real sandbox-manager and a real verifier, each a process
 * of its own, and the verdict on a change. Leaves nothing behind.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import {
  CONSUMERS,
  type Content,
  KV_BUCKETS,
  OBJECT_BUCKETS,
  SandboxService,
  STREAMS,
  subject,
  type Verdict,
  VerdictSchema,
  VerifyWorkSchema,
} from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology, rpcClient } from "@mortise/kernel";
import { endProcess, type NatsFixture, startNats, whenReady } from "@mortise/testkit";
import { type Change, patchBytes } from "./patch-bytes.js";
import { VerifierProcess } from "./verifier-process.js";

const MANAGER = path.join(import.meta.dirname, "../../sandbox-manager/dist/main.js");
export const RUN = "r1";

export interface Graded {
  readonly id: string;
  readonly digest: string;
}

export class VerificationWorld {
  readonly bus: Bus;
  readonly #nats: NatsFixture;
  readonly #manager: ManagerProcess;
  readonly #verifier: VerifierProcess;
  readonly #verdicts = new Map<string, Verdict>();
  readonly #bases = new Map<string, Promise<string>>();
  #serial = 0;

  private constructor(nats: NatsFixture, bus: Bus, manager: ManagerProcess, verifier: VerifierProcess) {
    this.#nats = nats;
    this.bus = bus;
    this.#manager = manager;
    this.#verifier = verifier;
  }

  /** `sandbox` and `verifier` are more lines of those tables of the site file. */
  static async start(
    directory: string,
    tasks: string,
    site: { readonly sandbox?: string; readonly verifier?: string } = {},
  ): Promise<VerificationWorld> {
    const nats = await startNats({ withUsers: true });
    const { user, password } = nats.identity("admin");
    const log = createLog({ service: "test", level: "error" });
    const bus = await connectBus({
      url: nats.url,
      user,
      password,
      name: "test",
      log,
      onFault: console.error,
    });
    await ensureTopology(bus, {
      streams: STREAMS,
      consumers: CONSUMERS,
      kv: KV_BUCKETS,
      objects: OBJECT_BUCKETS,
    });
    const manager = await ManagerProcess.start(nats, directory, tasks, site.sandbox ?? "");
    const verifier = new VerifierProcess(nats, directory, tasks, site.verifier ?? "");
    const world = new VerificationWorld(nats, bus, manager, verifier);
    await bus.follow({
      stream: "REWARDS",
      filters: [`mortise.v1.reward.${RUN}.*`],
      from: "first",
      schema: VerdictSchema,
      onMessage: (verdict) => void world.#verdicts.set(verdict.trial, verdict),
    });
    await verifier.start();
    return world;
  }

  /** The verdict on a change of the task's work tree; on none, when there is none. */
  async grade(task: Graded, change?: Change, timeoutMs = 0): Promise<Verdict> {
    const trial = `trial-${++this.#serial}`;
    const patch = change === undefined ? undefined : inline(patchBytes(await this.#base(task), change));
    await this.bus.publish({
      subject: subject.verify(RUN, trial),
      schema: VerifyWorkSchema,
      message: { run: RUN, trial, task, timeoutMs, ...(patch === undefined ? {} : { patch }) },
      dedupeId: `${RUN}/${trial}/verify`,
    });
    while (!this.#verdicts.has(trial)) await new Promise((resolve) => setTimeout(resolve, 50));
    return this.#verdicts.get(trial)!;
  }

  /** The bytes a verdict refers to. */
  async content(content: Content | undefined): Promise<Uint8Array> {
    if (content?.place.case === "inline") return content.place.value;
    if (content?.place.case !== "object") throw new Error("the verdict has no such content");
    return (await (await this.bus.objects("blobs")).get(content.place.value))!;
  }

  /** What the tests printed. */
  async logOf(verdict: Verdict): Promise<string> {
    return gunzipSync(await this.content(verdict.log)).toString();
  }

  async stop(): Promise<void> {
    await this.#verifier.end("SIGTERM");
    await this.#manager.stop();
    await this.bus.close();
    await this.#nats.stop();
  }

  /** The digest of the task's work tree: what a manager says about a change against another. */
  #base(task: Graded): Promise<string> {
    const known = this.#bases.get(task.id) ?? this.#askBase(task);
    this.#bases.set(task.id, known);
    return known;
  }

  async #askBase(task: Graded): Promise<string> {
    const { bearer } = this.#nats.identity("sandbox-manager");
    const client = rpcClient(SandboxService, this.#manager.rpcAddress, { bearer });
    try {
      const patch = inline(patchBytes("none", {}));
      const request = { run: RUN, trial: "base", task, argv: ["true"], patch };
      const refusal = await client.runOnce(request, { deadlineMs: 120_000 }).catch(String);
      const found = /workspace is ([0-9a-f]+)/.exec(String(refusal));
      if (found === null) throw new Error(`no digest in ${JSON.stringify(refusal)}`);
      return found[1]!;
    } finally {
      client.close();
    }
  }
}

function inline(bytes: Buffer) {
  return {
    sha256: createHash("sha256").update(bytes).digest("hex"),
    size: BigInt(bytes.byteLength),
    place: { case: "inline" as const, value: bytes },
  };
}

class ManagerProcess {
  readonly rpcAddress: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, rpcAddress: string) {
    this.#child = child;
    this.rpcAddress = rpcAddress;
  }

  static async start(
    nats: NatsFixture,
    directory: string,
    tasks: string,
    sandbox: string,
  ): Promise<ManagerProcess> {
    const own = path.join(directory, "manager");
    const identity = path.join(own, "identity");
    mkdirSync(identity, { recursive: true });
    writeFileSync(
      path.join(identity, "sandbox-manager.json"),
      JSON.stringify(nats.identity("sandbox-manager")),
    );
    const site = path.join(own, "site.toml");
    writeFileSync(
      site,
      `nats.url = "${nats.url}"
identity.directory = "${identity}"
state.directory = "${path.join(own, "state")}"
tasks.directory = "${tasks}"
[sandbox]
backend = "runc"
${sandbox}
`,
    );
    const child = spawn(process.execPath, [MANAGER, "--site", site], { stdio: ["ignore", "pipe", "pipe"] });
    return new ManagerProcess(child, (await whenReady(child, "manager")).rpc as string);
  }

  async stop(): Promise<void> {
    await endProcess(this.#child);
  }
}

/** Why real verifications cannot be run here; undefined when they can. */
export function absentFor(image: object & { readonly missing?: string }): string | undefined {
  if (image.missing !== undefined) return image.missing;
  if (process.getuid?.() !== 0) return "runc needs root here";
  return spawnSync("runc", ["--version"]).status === 0 ? undefined : "runc is absent";
}
