/**
 * Owns a real nats-server for one test file: random port, JetStream in a temporary directory, nothing left behind.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type BusUser, type Identity, permissionsOf, SERVICE_NAMES } from "@mortise/contracts";
import { findNatsServer } from "./nats-binary.js";

const START_TIMEOUT_MS = 15_000;
const MAX_PAYLOAD_BYTES = 8 * 1024 * 1024;
const BEARER = "test-bearer";

export interface NatsOptions {
  /** Creates the users of the deployment with the permissions of their rows; otherwise any user may do anything. */
  readonly withUsers?: boolean;
}

/** A running server. */
export interface NatsFixture {
  readonly url: string;
  readonly pid: number;
  /** Credentials of a user; with `withUsers` they carry that user's permissions. */
  identity(user: BusUser): Identity;
  /** SIGKILL, as a crash would; the port and the stored streams stay. */
  kill(): Promise<void>;
  /** Starts again on the same port and store after `kill`. */
  restart(): Promise<void>;
  /** Ends the server and removes its directory. */
  stop(): Promise<void>;
}

export async function startNats(options: NatsOptions = {}): Promise<NatsFixture> {
  const directory = await mkdtemp(join(tmpdir(), "mortise-nats-"));
  const server = new NatsProcess(findNatsServer(), directory, options.withUsers === true);
  try {
    await server.start();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

class NatsProcess implements NatsFixture {
  readonly #binary: string;
  readonly #directory: string;
  readonly #withUsers: boolean;
  #child: ChildProcess | undefined;
  /** -1 asks the server for a free port; after the first start it is the one it took. */
  #port = -1;

  constructor(binary: string, directory: string, withUsers: boolean) {
    this.#binary = binary;
    this.#directory = directory;
    this.#withUsers = withUsers;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.#port}`;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  identity(user: BusUser): Identity {
    return { user, password: `password-of-${user}`, bearer: BEARER };
  }

  async start(): Promise<void> {
    const configuration = join(this.#directory, "nats.conf");
    await writeFile(configuration, JSON.stringify(this.#configuration()), { mode: 0o600 });
    const child = spawn(this.#binary, ["-c", configuration], { stdio: ["ignore", "ignore", "pipe"] });
    this.#child = child;
    let output = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4_000);
    });
    const exited = once(child, "exit").then(() => {
      throw new Error(`nats-server ended while starting:\n${output}`);
    });
    exited.catch(() => {});
    await Promise.race([this.#awaitPort(child), exited]);
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async restart(): Promise<void> {
    await this.start();
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  }

  /** The server writes the ports it took to a file named after its process. */
  async #awaitPort(child: ChildProcess): Promise<void> {
    const path = join(this.#directory, `nats-server_${child.pid}.ports`);
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (Date.now() < deadline) {
      const text = await readFile(path, "utf8").catch(() => "");
      if (text !== "") {
        const [url] = (JSON.parse(text) as { nats: string[] }).nats;
        this.#port = Number(new URL(url!).port);
        return;
      }
      await sleep(20);
    }
    throw new Error(`nats-server wrote no ${path} within ${START_TIMEOUT_MS} ms`);
  }

  #configuration(): object {
    const users: BusUser[] = ["admin", "observer", ...SERVICE_NAMES];
    return {
      listen: `127.0.0.1:${this.#port}`,
      server_name: "test",
      ports_file_dir: this.#directory,
      max_payload: MAX_PAYLOAD_BYTES,
      jetstream: { store_dir: join(this.#directory, "jetstream") },
      ...(this.#withUsers && {
        authorization: {
          users: users.map((user) => {
            const { user: name, password } = this.identity(user);
            const { publish, subscribe } = permissionsOf(user);
            return { user: name, password, permissions: { publish, subscribe } };
          }),
        },
      }),
    };
  }
}
