/**
 * A Docker engine that is elsewhere as far as that can be had on one machine: a dockerd of its own behind TLS, in mount
 * and process namespaces of its own, where the places a manager keeps files in are empty; if asked for, in a network
 * of its own too, joined to this host by one cable. Nothing of it is left.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { EngineSettings } from "../../src/backend/docker/engine.js";
import { connectEngine, engineAddress } from "../../src/backend/docker/engine.js";
import { Authority } from "./certificates.js";

const PROGRAMS = ["dockerd", "containerd", "runc", "unshare", "openssl", "ip"];
const REPOSITORY = path.resolve(import.meta.dirname, "../../../..");
/** What a manager has on disk; what lies below another of them goes with it. */
const HIDDEN = [tmpdir(), REPOSITORY].filter(
  (one, _, all) => !all.some((other) => one.startsWith(`${other}/`)),
);
/** Outside of what is hidden. */
const PLACE = "/var/tmp";
const START_ATTEMPTS = 300;

export interface EngineWish {
  /** Whether its network is its own: then nothing of this host's loopback is there. */
  readonly hasOwnNetwork?: boolean;
  readonly isPlain?: boolean;
}

/** Why there can be none here; undefined when there can. */
export function whyNoEngine(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "a second engine needs Linux and root";
  const missing = PROGRAMS.filter((name) => spawnSync("which", [name]).status !== 0);
  if (missing.length > 0) return `not installed: ${missing.join(", ")}`;
  return HIDDEN.some((hidden) => PLACE === hidden || PLACE.startsWith(`${hidden}/`))
    ? `${PLACE} would be hidden from the engine`
    : undefined;
}

export class RemoteEngine {
  readonly host: string;
  readonly port: number;
  readonly authority: Authority;
  readonly #directory: string;
  readonly #isPlain: boolean;
  #child: ChildProcess | undefined;
  #output = "";

  private constructor(directory: string, host: string, port: number, isPlain: boolean) {
    this.#directory = directory;
    this.host = host;
    this.port = port;
    this.#isPlain = isPlain;
    this.authority = new Authority(path.join(directory, "certificates"));
  }

  static async start({ hasOwnNetwork = false, isPlain = false }: EngineWish = {}): Promise<RemoteEngine> {
    const directory = mkdtempSync(path.join(PLACE, "mortise-engine-"));
    // Of the range for benchmarks of network devices, which nothing routes.
    const subnet = `198.18.${process.pid % 250}`;
    const host = hasOwnNetwork ? `${subnet}.2` : "127.0.0.1";
    const engine = new RemoteEngine(directory, host, hasOwnNetwork ? 2376 : await freePort(), isPlain);
    try {
      await engine.#start(hasOwnNetwork ? subnet : undefined);
      return engine;
    } catch (error) {
      await engine.stop();
      throw error;
    }
  }

  /** For the site file. */
  get settings(): EngineSettings {
    const host = `tcp://${this.host}:${this.port}`;
    return this.#isPlain ? { host, allowPlainTcp: true } : { host, tls: this.#client };
  }

  #made: { ca: string; cert: string; key: string } | undefined;
  get #client() {
    this.#made ??= { ca: this.authority.ca, ...this.authority.pair({}) };
    return this.#made;
  }

  get docker() {
    return connectEngine(engineAddress(this.settings));
  }

  async #start(subnet: string | undefined): Promise<void> {
    const { cert, key } = this.authority.pair({ address: this.host });
    const tls = ["--tlsverify", `--tlscacert=${this.authority.ca}`, `--tlscert=${cert}`, `--tlskey=${key}`];
    const below = (name: string) => path.join(this.#directory, name);
    const argv = [
      "dockerd",
      ...["data-root", "exec-root", "pidfile"].map((name) => `--${name}=${below(name)}`),
      `--cgroup-parent=${this.#cgroup}`,
      ...["--iptables=false", "--ip6tables=false", "--bridge=none"],
      ...(this.#isPlain ? [] : tls),
      ...["-H", `tcp://${this.host}:${this.port}`],
    ];
    const script = [
      "set -e",
      "mount --make-rprivate /",
      // What a manager has on disk is not there.
      ...HIDDEN.map((hidden) => `mount -t tmpfs -o size=1m,mode=555 hidden ${hidden}`),
      `mkdir ${below("data-root")} && mount -t tmpfs -o mode=700 data ${below("data-root")}`,
      ...(subnet === undefined
        ? []
        : [
            "ip link set lo up",
            "read ready",
            `ip addr add ${this.host}/30 dev there`,
            "ip link set there up",
          ]),
      `exec ${argv.join(" ")}`,
    ].join("\n");
    const namespaces = ["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
    if (subnet !== undefined) namespaces.push("--net");
    const child = spawn("unshare", [...namespaces, "sh", "-c", script], {
      stdio: ["pipe", "pipe", "pipe"],
      cwd: "/",
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        this.#output = (this.#output + chunk.toString()).slice(-4000);
      });
    if (subnet !== undefined) await this.#plugIn(subnet);
    await this.#answering();
  }

  /** One cable: its ends here and there. */
  async #plugIn(subnet: string): Promise<void> {
    const pid = await this.#inner();
    const here = `mt${process.pid % 100_000}`;
    ip("link", "add", here, "type", "veth", "peer", "name", "there", "netns", String(pid));
    ip("addr", "add", `${subnet}.1/30`, "dev", here);
    ip("link", "set", here, "up");
    this.#child!.stdin!.write("ready\n");
  }

  async #answering(): Promise<void> {
    for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
      if (this.#child!.exitCode !== null) break;
      if (
        await this.docker.ping().then(
          () => true,
          () => false,
        )
      )
        return;
      await delay(100);
    }
    throw new Error(`the second engine does not answer:\n${this.#output}`);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const exited = once(child, "exit");
      const inner = await this.#inner(child).catch(() => undefined);
      // Its first process: asked kindly it ends its containers and its containerd.
      if (inner !== undefined) process.kill(inner, "SIGTERM");
      else child.kill("SIGKILL");
      await exited;
    }
    removeGroups(this.#cgroup);
    rmSync(this.#directory, { recursive: true, force: true });
  }

  get #cgroup(): string {
    return `/${path.basename(this.#directory)}`;
  }

  /** The process that is the first one inside. */
  async #inner(child = this.#child!): Promise<number> {
    for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
      const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim();
      if (children !== "") return Number(children.split(" ")[0]);
      await delay(10);
    }
    throw new Error("unshare started nothing");
  }
}

function ip(...argv: string[]): void {
  const { status, stderr } = spawnSync("ip", argv, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${argv.join(" ")}: ${stderr}`);
}

async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

/** Empty ones: every process in them has ended. */
function removeGroups(group: string): void {
  const roots = ["/sys/fs/cgroup", ...readdirSync("/sys/fs/cgroup").map((name) => `/sys/fs/cgroup/${name}`)];
  for (const root of roots) remove(root + group);
}

function remove(directory: string): void {
  if (!existsSync(directory)) return;
  for (const entry of readdirSync(directory, { withFileTypes: true }))
    if (entry.isDirectory()) remove(path.join(directory, entry.name));
  rmdirSync(directory);
}
