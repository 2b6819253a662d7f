/**
 * Owns a server under measurement as its own process: started, asked what it used, ended. What it serves is
 * serve.ts.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { ProxyService } from "@mortise/contracts";
import { type Client, rpcClient } from "@mortise/kernel";
import type { ReplyPlan } from "./replies.js";
import { RUN, type Stand } from "./stand.js";

/**
 * proxy: the product. unjournalled: the same, with turns acknowledged by nobody. naive: reads, renders and
 * tokenises the whole history each time with the tokenizer's library as published, and keeps nothing. naive-words:
 * the same, with the proxy's memory of words. floor: streams the reply, whatever was asked.
 */
export type ServerKind = "proxy" | "unjournalled" | "naive" | "naive-words" | "floor";

export interface ServeOptions {
  readonly kind: ServerKind;
  readonly natsUrl: string;
  readonly identity: { readonly user: string; readonly password: string; readonly bearer: string };
  readonly run: string;
  readonly checkpoint: string;
  readonly directory: string;
  readonly reply: ReplyPlan;
}

export interface Usage {
  /** User and system time of the process. */
  readonly cpuMs: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
  /** Buffers and typed arrays. */
  readonly arrayBytes: number;
}

export type ServerMessage =
  | { readonly kind: "ready"; readonly address: string; readonly rpcAddress: string | undefined }
  | { readonly kind: "usage"; readonly usage: Usage };

export class Server {
  readonly kind: ServerKind;
  readonly address: string;
  readonly pid: number;
  private readonly child: ChildProcess;
  private readonly rpc: (Client<typeof ProxyService> & { close(): void }) | undefined;

  private constructor(
    kind: ServerKind,
    child: ChildProcess,
    ready: { address: string; rpcAddress: string | undefined },
    bearer: string,
  ) {
    this.kind = kind;
    this.child = child;
    this.pid = child.pid!;
    this.address = ready.address;
    this.rpc =
      ready.rpcAddress === undefined ? undefined : rpcClient(ProxyService, ready.rpcAddress, { bearer });
  }

  static async start(stand: Stand, kind: ServerKind, reply: ReplyPlan): Promise<Server> {
    const identity = stand.nats.identity("proxy");
    const { checkpoint, directory } = stand;
    const options: ServeOptions = {
      kind,
      natsUrl: stand.nats.url,
      identity,
      run: RUN,
      checkpoint,
      directory,
      reply,
    };
    const program = fileURLToPath(new URL("./serve.js", import.meta.url));
    const child = fork(program, [JSON.stringify(options)], { execArgv: ["--expose-gc", ...profiling()] });
    const ready = await answer(child, "ready");
    return new Server(kind, child, ready, identity.bearer);
  }

  /** The token of a trial's session; servers without sessions take any. */
  async open(trial: string): Promise<{ address: string; token: string }> {
    const { address, rpc } = this;
    if (!rpc) return { address, token: "none" };
    for (;;) {
      try {
        const { token } = await rpc.openSession({ run: RUN, trial, rngKey: `1/bench/${trial}` });
        return { address, token };
      } catch (error) {
        if ((error as { disposition?: string }).disposition !== "retry") throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  async seal(trial: string): Promise<void> {
    await this.rpc?.sealSession({ run: RUN, trial });
  }

  async usage(options: { collect: boolean } = { collect: false }): Promise<Usage> {
    this.child.send(options);
    return (await answer(this.child, "usage")).usage;
  }

  async stop(): Promise<void> {
    this.rpc?.close();
    const exited = once(this.child, "exit");
    this.child.kill("SIGTERM");
    await exited;
  }
}

/** A CPU profile of each server beside the results, when asked for. */
function profiling(): string[] {
  const directory = process.env.MORTISE_BENCH_PROFILE;
  return directory === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${directory}`];
}

function answer<K extends ServerMessage["kind"]>(
  child: ChildProcess,
  kind: K,
): Promise<Extract<ServerMessage, { kind: K }>> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) =>
      reject(new Error(`a server under measurement ended with ${code}`));
    child.once("exit", onExit);
    const onMessage = (message: ServerMessage) => {
      if (message.kind !== kind) return;
      child.off("message", onMessage);
      child.off("exit", onExit);
      resolve(message as Extract<ServerMessage, { kind: K }>);
    };
    child.on("message", onMessage);
  });
}
