/**
 * A real vLLM server on this machine: started with a checkpoint, waited for, stopped. Needs a Python with vLLM
 * (install-vllm.sh); without one the caller is told, and runs nothing.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, openSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const POLL_MS = 1000;
/** Shorter than the suite's patience with a hook, so that a server that never answers is ended and not left. */
const START_MS = 25 * 60_000;
/** Lines of the server's own log in the error, when it ends before it serves. */
const LOG_LINES = 25;

/**
 * Settings of every server here. One process and no thread pinning, for small machines; no Dynamo, whose
 * compilation of the sampler outlasts the server's patience there; control routes for weight updates.
 */
const ENVIRONMENT = {
  VLLM_TARGET_DEVICE: "cpu",
  VLLM_CPU_KVCACHE_SPACE: "1",
  VLLM_CPU_OMP_THREADS_BIND: "nobind",
  VLLM_SERVER_DEV_MODE: "1",
  VLLM_NO_USAGE_STATS: "1",
  HF_HUB_OFFLINE: "1",
  TORCHDYNAMO_DISABLE: "1",
  OMP_NUM_THREADS: "1",
};

/** The directory of a Python environment with vLLM, or undefined. */
export function vllmEnvironment(): string | undefined {
  const directory = resolve(ROOT, process.env.MORTISE_VLLM ?? ".mortise/vllm");
  return existsSync(join(directory, "bin", "vllm")) ? directory : undefined;
}

export interface VllmProcess {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a server and waits until it answers. @throws Error with the end of its log when it does not */
export async function startVllm(
  environment: string,
  checkpoint: string,
  options: { maxTokens: number; extra?: readonly string[] },
): Promise<VllmProcess> {
  const port = await freePort();
  const log = join(dirname(checkpoint), `vllm-${port}.log`);
  const output = openSync(log, "a");
  const child = spawn(
    join(environment, "bin", "vllm"),
    [
      ...["serve", checkpoint, "--host", "127.0.0.1", "--port", `${port}`, "--served-model-name", "policy"],
      ...["--dtype", "float32", "--enforce-eager", "--distributed-executor-backend", "uni"],
      ...[
        "--max-model-len",
        `${options.maxTokens}`,
        "--max-num-seqs",
        "8",
        "--max-num-batched-tokens",
        "1024",
      ],
      ...["--logprobs-mode", "processed_logprobs", "--enable-scale-out", ...(options.extra ?? [])],
    ],
    { env: { ...process.env, ...ENVIRONMENT }, stdio: ["ignore", output, output], detached: true },
  );
  const url = `http://127.0.0.1:${port}`;
  const latest = Date.now() + START_MS;
  while (!(await answers(`${url}/health`))) {
    if (child.exitCode !== null) throw new Error(`vLLM ended with ${child.exitCode}:\n${endOf(log)}`);
    if (Date.now() > latest) {
      await stop(child);
      throw new Error(`vLLM did not answer within ${START_MS} ms:\n${endOf(log)}`);
    }
    await new Promise((wake) => setTimeout(wake, POLL_MS));
  }
  return { url, stop: () => stop(child) };
}

function endOf(log: string): string {
  return readFileSync(log, "utf8").trim().split("\n").slice(-LOG_LINES).join("\n");
}

/** The server's engine is a process of its own: the whole group goes. */
async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  process.kill(-child.pid!, "SIGTERM");
  await Promise.race([ended, new Promise((wake) => setTimeout(wake, 20_000))]);
  if (child.exitCode === null) process.kill(-child.pid!, "SIGKILL");
}

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    (response) => response.ok,
    () => false,
  );
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
