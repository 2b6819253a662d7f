/**
 * Owns the Docker engine of the tests: the one that is running, else a private one started here with everything
 * it keeps in one directory. Does not install an engine and leaves none running.
 *
 * A private engine first builds in the host's network, without bridges or packet filter rules of its own; it then
 * runs containers in a network namespace of its own, so that nothing of it is left on the host, and another
 * engine on the same host is not disturbed.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const START_TIMEOUT_MS = 60_000;
const LOOK_INTERVAL_MS = 200;
const QUIET_TAIL_CHARACTERS = 2_000;

type Network = "host" | "isolated";

export class DockerEngine {
  readonly environment: Readonly<Record<string, string>>;
  readonly #directory: string | undefined;
  /** Images outlive the tests when the operator names a directory for them. */
  readonly #keepsData: boolean;
  #process: ChildProcess | undefined;

  private constructor(directory: string | undefined, keepsData: boolean) {
    this.#directory = directory;
    this.#keepsData = keepsData;
    this.environment =
      directory === undefined ? {} : { DOCKER_HOST: `unix://${join(directory, "docker.sock")}` };
  }

  /** An engine that can be used, or the reason why there is none. */
  static find(): DockerEngine | string {
    const missing = ["docker", "docker-compose"].filter((tool) => !isOnPath(tool));
    const hasComposePlugin = spawnSync("docker", ["compose", "version"]).status === 0;
    if (missing.includes("docker")) return "docker is not installed";
    if (missing.includes("docker-compose") && !hasComposePlugin)
      return "neither docker compose nor docker-compose is installed";
    if (spawnSync("docker", ["info"]).status === 0) return new DockerEngine(undefined, true);
    if (!isOnPath("dockerd")) return "no Docker engine answers, and dockerd is not installed";
    if (process.getuid?.() !== 0) return "no Docker engine answers, and only root can start one";
    const kept = process.env.MORTISE_DOCKER_DATA;
    if (kept !== undefined) mkdirSync(kept, { recursive: true });
    return new DockerEngine(kept ?? mkdtempSync(join(tmpdir(), "mortise-docker-")), kept !== undefined);
  }

  /** A private engine without bridges can build only in the host's network. */
  get hasHostNetworkOnly(): boolean {
    return this.#directory !== undefined;
  }

  /** Starts a private engine, or starts it again in another network. */
  async start(network: Network): Promise<void> {
    if (this.#directory === undefined) return;
    await this.#end();
    const log = join(this.#directory, "dockerd.log");
    const output = openSync(log, "a");
    const namespaces = network === "host" ? PRIVATE_MOUNTS : [...PRIVATE_MOUNTS, ...PRIVATE_NETWORK];
    const [command, ...args] = [...namespaces, ...this.#daemon(this.#directory, network)];
    this.#process = spawn(command as string, args, { stdio: ["ignore", output, output] });
    for (let waited = 0; waited < START_TIMEOUT_MS; waited += LOOK_INTERVAL_MS) {
      if (this.#process.exitCode !== null) break;
      const env = { ...process.env, ...this.environment };
      if (spawnSync("docker", ["info"], { env }).status === 0) return;
      await sleep(LOOK_INTERVAL_MS);
    }
    throw new Error(`dockerd did not start:\n${readFileSync(log, "utf8").slice(-QUIET_TAIL_CHARACTERS)}`);
  }

  async stop(): Promise<void> {
    if (this.#directory === undefined) return;
    await this.#end();
    if (!this.#keepsData) rmSync(this.#directory, { recursive: true, force: true });
  }

  #daemon(directory: string, network: Network): string[] {
    return [
      "dockerd",
      ...["--data-root", join(directory, "data"), "--exec-root", join(directory, "exec")],
      ...["--pidfile", join(directory, "docker.pid"), "--host", `unix://${join(directory, "docker.sock")}`],
      ...(network === "host" ? ["--bridge", "none", "--iptables=false", "--ip-forward=false"] : []),
    ];
  }

  async #end(): Promise<void> {
    const daemon = this.#process;
    this.#process = undefined;
    if (daemon === undefined || daemon.exitCode !== null) return;
    const ended = new Promise((resolve) => daemon.once("exit", resolve));
    daemon.kill("SIGTERM");
    await ended;
  }
}

/** Mounts of the daemon end with it. Each program replaces the one before: the child is the daemon itself. */
const PRIVATE_MOUNTS = ["unshare", "--mount"];
const PRIVATE_NETWORK = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"];

function isOnPath(tool: string): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((directory) => existsSync(join(directory, tool)));
}
