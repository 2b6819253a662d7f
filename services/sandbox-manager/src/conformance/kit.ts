/**
 * What every case of the conformance kit works with: one started backend, an image and a workspace, and sandboxes
 * that are removed after each case. Asserts nothing.
 */
import http from "node:http";
import { afterAll, afterEach, beforeAll } from "vitest";
import type {
  Command,
  ExecResult,
  Image,
  Sandbox,
  SandboxBackend,
  SandboxSpec,
  Snapshot,
  Tree,
} from "../backend/types.js";
import { packTar, unpackTar } from "../patch/tar.js";

/** What a backend promises; what it does not is not asked of it. */
export interface Confines {
  /** Capabilities, system calls, network and memory are confined and measured. */
  readonly isolation: boolean;
  readonly diskLimit: boolean;
  /** A command can be killed without the sandbox ending. */
  readonly outlivesTimeout: boolean;
  /** Images from registries and files, workspaces inside them. */
  readonly images: boolean;
  /** `/`, and directories an upper layer does not list, look as in the image; Docker makes them anew, 0755 of root. */
  readonly directoryAttributes: boolean;
  /** `/` itself looks as in the image; as `directoryAttributes` when absent. */
  readonly rootAttributes?: boolean;
  /** A sandbox can be kept to start others from; true when absent, as are the following. */
  readonly snapshots?: boolean;
  /** Hosts can be allowed besides the model. */
  readonly allowLists?: boolean;
  /** Processes have a limit for each sandbox, with a reserve for our own next command. */
  readonly pidsReserve?: boolean;
  /** What its runtime leaves within reach and nothing here can close, in the words of the cases that find it. */
  readonly leaves?: readonly string[];
}

export const MIB = 1024 * 1024;
export const ENVIRONMENT = { PATH: "/usr/bin:/bin", HOME: "/tmp" };
export const DIFF_LIMITS = { maxFileBytes: MIB, maxTotalBytes: 4 * MIB };
export const LIMITS = { cpus: 1, memoryBytes: 192 * MIB, pids: 48, diskBytes: 16 * MIB, outputBytes: 4096 };

export const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
export const file = (path: string, content: string, isExecutable = false) => ({
  path,
  isExecutable,
  content: Buffer.from(content),
});

export class Kit {
  readonly can: Confines;
  readonly name: string;
  readonly #make: () => SandboxBackend;
  readonly #open: Sandbox[] = [];
  readonly #snapshots: Snapshot[] = [];
  #backend: SandboxBackend | undefined;
  #image: Image | undefined;
  #workspace: Tree | undefined;
  #serial = 0;

  constructor(name: string, make: () => SandboxBackend, can: Confines) {
    this.name = name;
    this.#make = make;
    this.can = can;
    beforeAll(() => this.#start());
    afterEach(async () => {
      await Promise.all(this.#open.splice(0).map((sandbox) => sandbox.destroy()));
      await Promise.all(this.#snapshots.splice(0).map((snapshot) => snapshot.release()));
    });
    afterAll(() => this.#backend?.stop());
  }

  get backend(): SandboxBackend {
    return this.#backend!;
  }
  get image(): Image {
    return this.#image!;
  }
  get workspace(): Tree {
    return this.#workspace!;
  }

  async create(changes: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    const sandbox = await this.backend.create({
      id: `${this.name}-${process.pid}-${++this.#serial}`,
      image: this.image,
      workspace: this.workspace,
      mounts: [],
      limits: LIMITS,
      network: { kind: "none" },
      ...changes,
    });
    this.#open.push(sandbox);
    return sandbox;
  }

  async snapshot(sandbox: Sandbox): Promise<Snapshot> {
    const snapshot = await sandbox.snapshot();
    this.#snapshots.push(snapshot);
    return snapshot;
  }

  run(sandbox: Sandbox, argv: Command["argv"], changes: Partial<Command> = {}): Promise<ExecResult> {
    return sandbox.exec({ argv, environment: ENVIRONMENT, timeoutMs: 20_000, ...changes });
  }

  sh(sandbox: Sandbox, script: string, changes: Partial<Command> = {}): Promise<ExecResult> {
    return this.run(sandbox, ["sh", "-c", script], changes);
  }

  /** Standard output of a script that must succeed. */
  async output(sandbox: Sandbox, script: string, changes: Partial<Command> = {}): Promise<string> {
    const { outcome, stdout, stderr } = await this.sh(sandbox, script, changes);
    if (outcome.kind !== "exited" || outcome.code !== 0)
      throw new Error(`${JSON.stringify(outcome)}: ${text(stdout.bytes)}${text(stderr.bytes)}`);
    return text(stdout.bytes);
  }

  async #start(): Promise<void> {
    const backend = this.#make();
    await backend.start();
    this.#backend = backend;
    this.#image = await backend.prepareImage({ kind: "host" });
    this.#workspace = await backend.prepareTree({
      kind: "files",
      files: [
        file("README.md", "read me\n"),
        file("run.sh", "#!/bin/sh\necho run\n", true),
        file("src/a.js", "export const a = 1;\n"),
        file("src/b.js", "export const b = 2;\n"),
        file("docs/one/x.txt", "x\n"),
        file("docs/one/y.txt", "y\n"),
      ],
    });
  }
}

/** Starts a command that goes on and resolves with what it will end as once `mark` was printed. */
export async function started(
  run: (changes: Partial<Command>) => Promise<ExecResult>,
  mark: string,
): Promise<{ readonly result: Promise<ExecResult>; readonly output: () => string }> {
  let seen = "";
  const up = Promise.withResolvers<void>();
  const result = run({
    onStdout: (chunk) => {
      seen += text(chunk);
      if (seen.includes(mark)) up.resolve();
    },
  });
  await Promise.race([
    up.promise,
    result.then((ended) => {
      if (!seen.includes(mark)) throw new Error(`ended before it began: ${JSON.stringify(ended.outcome)}`);
    }),
  ]);
  return { result, output: () => seen };
}

/** A server on the host that answers as a model endpoint would. */
export async function withModel(
  fn: (address: { host: string; port: number }) => Promise<void>,
): Promise<void> {
  const server = http.createServer((request, reply) => reply.end(`model saw ${request.url}`));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await fn({ host: "127.0.0.1", port: (server.address() as { port: number }).port });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** A file below a directory of an idle sandbox; undefined when there is none. */
export async function readBelow(sandbox: Sandbox, directory: string, name: string) {
  const members = await unpackTar(await sandbox.getTar(directory), 64 * MIB);
  return members.find((member) => member.name === name)?.content.toString();
}

/** A patch as lines that a reader can compare. */
export function listed(patch: Awaited<ReturnType<Sandbox["diff"]>>) {
  return patch.entries.map((entry) =>
    entry.kind === "file"
      ? [entry.path, entry.kind, entry.mode, text(entry.content)]
      : entry.kind === "symlink"
        ? [entry.path, entry.kind, entry.target]
        : [entry.path, entry.kind],
  );
}

export function tarOf(name: string, content: string): Promise<Uint8Array> {
  return packTar([{ name, kind: "file", mode: 0o644, content: Buffer.from(content) }], 1000);
}
