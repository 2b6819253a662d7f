/** Owns what every measurement of sandboxes starts from: a started backend, the host image and a task's files. */
import {
  type Command,
  type ExecResult,
  type Image,
  type Sandbox,
  type SandboxBackend,
  type SandboxSpec,
  shell,
  type Tree,
} from "@mortise/sandbox-manager";

const MIB = 1024 * 1024;
const LIMITS = { cpus: 1, memoryBytes: 256 * MIB, pids: 64, diskBytes: 64 * MIB, outputBytes: 65_536 };
const FILES = 200;

export class SandboxStand {
  readonly backend: SandboxBackend;
  readonly image: Image;
  readonly workspace: Tree;
  #serial = 0;

  private constructor(backend: SandboxBackend, image: Image, workspace: Tree) {
    this.backend = backend;
    this.image = image;
    this.workspace = workspace;
  }

  static async start(backend: SandboxBackend): Promise<SandboxStand> {
    const availability = await backend.availability();
    if (!availability.ok) throw new Error(`${backend.name}: ${availability.reason}`);
    await backend.start();
    const image = await backend.prepareImage({ kind: "host" });
    const files = Array.from({ length: FILES }, (_, at) => ({
      path: `src/module-${at % 20}/file-${at}.js`,
      isExecutable: false,
      content: Buffer.from(`export const value = ${at};\n`.repeat(50)),
    }));
    return new SandboxStand(backend, image, await backend.prepareTree({ kind: "files", files }));
  }

  stop(): Promise<void> {
    return this.backend.stop();
  }

  /** With the model endpoint, as trials have it. Nothing listens behind it. */
  create(changes: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    return this.backend.create({
      id: `bench-${++this.#serial}`,
      image: this.image,
      workspace: this.workspace,
      mounts: [],
      limits: LIMITS,
      network: { kind: "model", host: "127.0.0.1", port: 9 },
      ...changes,
    });
  }
}

/** Runs a command that must succeed. */
export async function run(sandbox: Sandbox, argv: Command["argv"]): Promise<ExecResult> {
  const result = await sandbox.exec({ argv, environment: { PATH: "/usr/bin:/bin" }, timeoutMs: 120_000 });
  if (result.outcome.kind !== "exited" || result.outcome.code !== 0)
    throw new Error(`${argv.join(" ")}: ${JSON.stringify(result.outcome)}`);
  return result;
}

export const NOTHING: Command["argv"] = shell("exit 0");

/** What a call takes, in milliseconds, and what it gives. */
export async function timed<T>(call: () => Promise<T>): Promise<{ ms: number; value: T }> {
  const startedAt = performance.now();
  const value = await call();
  return { ms: performance.now() - startedAt, value };
}
