/**
 * Owns LiteLLM's proxy as a contestant: started from an installation that the caller names, with one model that
 * it forwards to the bare server as an OpenAI endpoint. It keeps no tokens and no turns; what is compared is the
 * way of a request through it.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import type { Contestant } from "./throughput.js";

const START_TIMEOUT_MS = 120_000;
const KEY = "sk-bench-0000000000";

export class LiteLlm implements Contestant {
  readonly name: string;
  readonly pid: number;
  private readonly child: ChildProcess;
  private readonly address: string;

  private constructor(name: string, child: ChildProcess, address: string) {
    this.name = name;
    this.child = child;
    this.pid = child.pid!;
    this.address = address;
  }

  /** @param program the `litellm` command of an installation with the proxy extra */
  static async start(options: {
    program: string;
    upstream: string;
    directory: string;
    workers: number;
  }): Promise<LiteLlm> {
    const { program, upstream, directory, workers } = options;
    const config = join(directory, `litellm-${workers}.yaml`);
    const route = { model: "openai/policy", api_base: `http://${upstream}/v1`, api_key: "none" };
    // JSON is YAML.
    const settings = {
      model_list: [{ model_name: "policy", litellm_params: route }],
      litellm_settings: { telemetry: false, num_retries: 0, request_timeout: 600 },
      general_settings: { master_key: KEY },
    };
    await writeFile(config, JSON.stringify(settings));
    const port = await freePort();
    const child = spawn(
      program,
      ["--config", config, "--host", "127.0.0.1", "--port", String(port), "--num_workers", String(workers)],
      {
        stdio: "ignore",
        cwd: directory,
        env: { ...process.env, LITELLM_LOG: "ERROR", PYTHONUNBUFFERED: "1" },
      },
    );
    const started = new LiteLlm(
      `litellm ${versionOf(program)}, ${workers} worker(s)`,
      child,
      `127.0.0.1:${port}`,
    );
    try {
      await started.awaitReady();
    } catch (error) {
      await started.stop();
      throw error;
    }
    return started;
  }

  async open(): Promise<{ address: string; token: string }> {
    return { address: this.address, token: KEY };
  }

  async seal(): Promise<void> {}

  async stop(): Promise<void> {
    if (this.child.exitCode !== null) return;
    const exited = once(this.child, "exit");
    this.child.kill("SIGTERM");
    await exited;
  }

  private async awaitReady(): Promise<void> {
    const deadline = performance.now() + START_TIMEOUT_MS;
    while (performance.now() < deadline) {
      const alive = await fetch(`http://${this.address}/health/liveliness`).catch(() => undefined);
      if (alive?.ok) return;
      if (this.child.exitCode !== null) throw new Error(`litellm ended with ${this.child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    throw new Error(`litellm did not start within ${START_TIMEOUT_MS} ms`);
  }
}

function versionOf(program: string): string {
  const python = join(dirname(program), "python");
  const code = "import importlib.metadata; print(importlib.metadata.version('litellm'))";
  return execFileSync(python, ["-c", code], { encoding: "utf8" }).trim();
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
