/**
 * Owns the helper's side of the conversation: each operation done by the host the helper runs on, as it would be by a
 * manager there; connections made to the model's place inside sandboxes handed to the manager. Decides nothing.
 *
 * H1  A connection from inside leads to the manager and nowhere else: the helper knows no address of a proxy.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import net from "node:net";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { decodePatch } from "../../../patch/codec.js";
import { type SealReport, sealRoot } from "../../../sealing/index.js";
import type { ModelEndpoint } from "../../network/index.js";
import { CgroupHost } from "../../runc/cgroup.js";
import type { LocalContainer } from "../host/local-container.js";
import { LocalHost } from "../host/local-host.js";
import type { StartedContainer } from "../host/types.js";
import { withForeignDirectory } from "./foreign-root.js";
import {
  type Answered,
  type Asked,
  CONNECTIONS_PATH,
  type ConnectionMade,
  decodeFrame,
  encodeFrame,
  type NetworkAsked,
  type Operation,
  readAll,
  toldError,
} from "./wire.js";

/** Of one sandbox; as a relay of the manager's own has them. */
const MAX_CONNECTIONS = 64;

type Answer<Name extends Operation> = Answered<Name> | readonly [Answered<Name>, Uint8Array];
type Handlers = {
  readonly [Name in Operation]: (asked: Asked<Name>, bytes: Uint8Array) => Promise<Answer<Name>>;
};

export class HelperServer {
  readonly #shared: string;
  readonly #containers = new Map<string, LocalContainer>();
  readonly #adopted = new Map<string, StartedContainer>();
  readonly #waiting = new Map<number, net.Socket>();
  /** What names stand for, where the manager resolves. */
  readonly #addresses = new Map<string, readonly string[]>();
  #host: LocalHost | undefined;
  #teller: ServerHttp2Stream | undefined;
  #nConnections = 0;
  #nIncoming = 0;

  constructor(shared: string) {
    this.#shared = shared;
  }

  serve(session: ServerHttp2Session): void {
    session.on("stream", (stream, headers) => {
      // Whoever asked is gone: nobody is left to be told.
      stream.on("error", () => undefined);
      const asked = headers[":path"] ?? "";
      if (asked === CONNECTIONS_PATH) this.#tell(stream);
      else if (asked.startsWith(`${CONNECTIONS_PATH}/`))
        this.#hand(stream, Number(asked.slice(CONNECTIONS_PATH.length + 1)));
      else void this.#answer(stream, asked.slice(1) as Operation);
    });
  }

  async #answer(stream: ServerHttp2Stream, name: Operation): Promise<void> {
    let status = 200;
    let frame: Buffer;
    try {
      const { facts, bytes } = decodeFrame(await readAll(stream));
      const handler = this.#handlers[name] as (asked: unknown, bytes: Uint8Array) => Promise<unknown>;
      const answer = await handler(facts, bytes);
      frame = Array.isArray(answer) ? encodeFrame(answer[0], answer[1] as Uint8Array) : encodeFrame(answer);
    } catch (error) {
      status = 500;
      frame = encodeFrame(toldError(error));
    }
    if (stream.destroyed) return;
    stream.respond({ ":status": status });
    stream.end(frame);
  }

  readonly #handlers: Handlers = {
    hello: async ({ privateHosts, resolves }) => {
      const cgroups = CgroupHost.detect();
      if (cgroups === undefined) return { problem: "no usable cgroup hierarchy is mounted there" };
      const resolve = async (name: string) => this.#addresses.get(name) ?? [];
      this.#host = new LocalHost({
        runDirectory: path.join(this.#shared, "run"),
        cgroups,
        allowedHosts: { privateHosts, ...(resolves ? { resolve } : {}) },
        openModel: (id) => (listener) => this.#openModel(id, listener),
      });
      await this.#host.start();
      // Of a helper before: who knows how much of it came.
      rmSync(path.join(this.#shared, "incoming"), { recursive: true, force: true });
      return {};
    },
    receive: async ({ name }) => {
      if (existsSync(path.join(this.#shared, "shown", name))) return {};
      const incoming = path.join(this.#shared, "incoming", String(++this.#nIncoming));
      mkdirSync(incoming, { recursive: true, mode: 0o755 });
      return { incoming };
    },
    received: async ({ name, incoming }) => {
      mkdirSync(path.join(this.#shared, "shown"), { recursive: true, mode: 0o755 });
      renameSync(incoming, path.join(this.#shared, "shown", name));
      return {};
    },
    open: async ({ id }) => ({ shown: await this.#started.open(id) }),
    adopt: async ({ id, started, ...asked }) => {
      this.#containers.set(id, await this.#started.adopt(id, started, this.#networkOf(asked)));
      this.#adopted.set(id, started);
      return {};
    },
    close: async ({ id }) => {
      this.#containers.delete(id);
      this.#adopted.delete(id);
      await this.#started.close(id);
      return {};
    },
    usage: async ({ id }) => this.#of(id).usage(),
    denied: async ({ id }) => ({ n: await this.#of(id).nDenied() }),
    look: async ({ id, pid }) => this.#of(id).look(pid),
    kill: async ({ id, root, isAlone }) => {
      await this.#of(id).kill(root, isAlone);
      return {};
    },
    setNetwork: async ({ id, ...asked }) => {
      await this.#of(id).setNetwork(this.#networkOf(asked));
      return {};
    },
    proveNetwork: async ({ id }) => this.#of(id).proveNetwork(),
    closeNetwork: async ({ id }) => {
      await this.#of(id).closeNetwork();
      return {};
    },
    putTar: async ({ id, directory, owner }, bytes) => {
      await this.#of(id).putTar(directory, bytes, owner);
      return {};
    },
    getTar: async ({ id, directory }) => [{}, await this.#of(id).getTar(directory)],
    seal: async ({ id, order }) => {
      this.#of(id);
      return sealed(this.#adopted.get(id)!, order);
    },
    addAgentAccount: async ({ id }) => {
      await this.#of(id).addAgentAccount();
      return {};
    },
    apply: async ({ id, workdir }, bytes) => {
      await this.#of(id).apply(await decodePatch(bytes), workdir);
      return {};
    },
  };

  get #started(): LocalHost {
    if (this.#host === undefined) throw new Error("the helper was not greeted");
    return this.#host;
  }

  #of(id: string): LocalContainer {
    const found = this.#containers.get(id);
    if (found === undefined) throw new Error(`the helper knows no sandbox ${id}`);
    return found;
  }

  #networkOf({ network, addresses = {} }: NetworkAsked) {
    for (const [name, found] of Object.entries(addresses)) this.#addresses.set(name, found);
    return network;
  }

  /** H1 */
  async #openModel(id: string, listenerFd: number): Promise<ModelEndpoint> {
    const sockets = new Set<net.Socket>();
    const server = new net.Server({ noDelay: true }, (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      this.#announce(id, socket);
    });
    server.maxConnections = MAX_CONNECTIONS;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ fd: listenerFd }, () => {
        server.off("error", reject);
        resolve();
      });
    });
    return {
      // Whether there is a proxy, and what it is asked, the manager knows.
      isUnreachable: false,
      modelTimeMs: 0,
      close: async () => {
        for (const socket of sockets) socket.destroy();
        await new Promise<void>((resolve) => server.close(() => resolve()));
      },
    };
  }

  #announce(id: string, socket: net.Socket): void {
    const connection = ++this.#nConnections;
    this.#waiting.set(connection, socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#waiting.delete(connection));
    const made: ConnectionMade = { connection, id };
    if (this.#teller === undefined || this.#teller.destroyed) socket.destroy();
    else this.#teller.write(`${JSON.stringify(made)}\n`);
  }

  #tell(stream: ServerHttp2Stream): void {
    stream.respond({ ":status": 200 });
    stream.resume();
    this.#teller = stream;
  }

  #hand(stream: ServerHttp2Stream, connection: number): void {
    const socket = this.#waiting.get(connection);
    this.#waiting.delete(connection);
    if (socket === undefined || socket.destroyed) {
      stream.respond({ ":status": 410 }, { endStream: true });
      return;
    }
    stream.respond({ ":status": 200 });
    stream.once("close", () => socket.destroySoon());
    socket.once("close", () => stream.end());
    stream.pipe(socket).pipe(stream);
  }
}

/** As a manager of this host would seal it. What is taken out is gone: grading starts from the pristine image. */
async function sealed({ pid, merged }: StartedContainer, order: Asked<"seal">["order"]): Promise<SealReport> {
  if (merged === undefined)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_NOT_CLOSED",
      message: "the Docker engine's storage driver shows no root filesystem to seal; overlay2 does.",
    });
  const scratch = mkdtempSync("/tmp/seal-");
  const at = path.join(scratch, "root");
  try {
    // The process beside the container that the engine started sees what the engine mounts.
    const place = { pid: parentOf(pid), directory: merged, at };
    const request = { ...order, scratch, store: path.join(scratch, "taken") };
    return await withForeignDirectory(place, () => sealRoot(at, request));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}
