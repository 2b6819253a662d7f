/** The proxy as processes of its own, on a site file, to be killed. Uses dist: run `tsc -b` first. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { ProxyService } from "@mortise/contracts";
import { findServices, rpcClient } from "@mortise/kernel";
import type { ProxyFixture, Replica } from "./proxy-fixture.js";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));

/** Starting two or three processes takes their share of a busy machine. */
export const PROCESS_TEST_MS = 180_000;

export interface ProxyProcess extends Pick<Replica, "rpc" | "modelAddress"> {
  /** Of /metrics and its neighbours. */
  readonly httpAddress: string;
  /** SIGKILL, as a crash would. */
  kill(): Promise<void>;
  /** SIGTERM; resolves with the exit code. */
  end(): Promise<number | null>;
}

export class ProxySite {
  private readonly fixture: ProxyFixture;
  readonly directory: string;
  private readonly children: ChildProcess[] = [];
  /** Everything the processes wrote. */
  private written = "";
  private started = 0;

  private constructor(fixture: ProxyFixture, directory: string) {
    this.fixture = fixture;
    this.directory = directory;
  }

  static async create(fixture: ProxyFixture): Promise<ProxySite> {
    const directory = await mkdtemp(join(tmpdir(), "mortise-proxy-site-"));
    const identity = JSON.stringify(fixture.nats.identity("proxy"));
    await writeFile(join(directory, "proxy.json"), identity, { mode: 0o600 });
    return new ProxySite(fixture, directory);
  }

  /** Starts a process and waits until it is ready. It meets NATS at `natsUrl`. */
  async start(natsUrl = this.fixture.nats.url): Promise<ProxyProcess> {
    const instance = `process${this.started++}`;
    const site = join(this.directory, `${instance}.toml`);
    const tables = [
      `nats.url = "${natsUrl}"`,
      ...["identity", "state", "tasks"].map((name) => `${name}.directory = "${this.directory}"`),
    ];
    await writeFile(site, `${tables.join("\n")}\n`);
    const args = [MAIN, "--site", site, "--instance", instance];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    this.children.push(child);
    child.stderr!.on("data", (chunk: Buffer) => {
      this.written += chunk.toString();
    });
    await this.untilReady(child);
    const found = (await findServices(this.fixture.admin, "proxy")).find((one) => one.instance === instance)!;
    const { bearer } = this.fixture.nats.identity("proxy");
    const rpc = rpcClient(ProxyService, found.rpcAddress, { bearer });
    const ended = async (signal: NodeJS.Signals): Promise<number | null> => {
      rpc.close();
      child.kill(signal);
      const [code] = await once(child, "exit");
      return code;
    };
    return {
      rpc,
      modelAddress: found.facts.modelAddress!,
      httpAddress: found.httpAddress,
      kill: async () => void (await ended("SIGKILL")),
      end: () => ended("SIGTERM"),
    };
  }

  /** What every process wrote to its log and to standard error, those that ended included. */
  get output(): string {
    return this.written;
  }

  private untilReady(child: ChildProcess): Promise<void> {
    return new Promise((resolve, reject) => {
      child.once("exit", (code) => reject(new Error(`the proxy ended with ${code}: ${this.written}`)));
      createInterface({ input: child.stdout! }).on("line", (line) => {
        this.written += `${line}\n`;
        if (line.includes('"ready":true')) resolve();
      });
    });
  }

  async stop(): Promise<void> {
    for (const child of this.children) child.kill("SIGKILL");
    await rm(this.directory, { recursive: true, force: true });
  }
}
