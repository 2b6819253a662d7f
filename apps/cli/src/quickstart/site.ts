/**
 * Owns the site file of a quick start: everything on loopback, free ports, the bundled tasks and harness.
 * The model API keeps its port for the life of the run: sandboxes were told where it is.
 */
import { randomInt } from "node:crypto";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { HarnessSettings } from "@mortise/contracts";
import { readSiteConfig } from "@mortise/kernel";
import { stringify } from "smol-toml";
import { writePrivate } from "../provision/identity.js";
import type { SandboxRuntime } from "../provision/runc.js";
import type { ProjectPaths } from "../site/project-paths.js";
import type { RunPaths } from "./run-directory.js";

/** Below what systems give to outgoing connections: nothing takes the port while the proxy is away for a second. */
const PORTS = { from: 20_000, to: 32_000 } as const;
const PORT_ATTEMPTS = 100;

export interface SiteFacts {
  readonly natsUrl: string;
  readonly tasksDirectory: string;
  readonly sandbox: SandboxRuntime;
}

export async function writeSiteFile(project: ProjectPaths, paths: RunPaths, facts: SiteFacts): Promise<void> {
  const site = {
    nats: { url: facts.natsUrl },
    identity: { directory: paths.identity },
    state: { directory: paths.state },
    tasks: { directory: facts.tasksDirectory },
    proxy: { port: await modelPort(paths) },
    harness: { mini: miniHarness(project.root) },
    sandbox: { backend: facts.sandbox.backend, runc: facts.sandbox.runc },
  };
  await writePrivate(paths.site, stringify(site));
}

/** The port an earlier start of the run used, if it is still free, else any free one. */
async function modelPort({ site }: RunPaths): Promise<number> {
  const earlier = existsSync(site) ? (await readSiteConfig(site)).proxy.port : 0;
  if (earlier !== 0 && (await isFree(earlier))) return earlier;
  for (let attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
    const port = randomInt(PORTS.from, PORTS.to);
    if (await isFree(port)) return port;
  }
  return 0;
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen({ host: "127.0.0.1", port }, () => server.close(() => resolve(true)));
  });
}

/** How the bundled harness is told about its model: as any OpenAI client is, by its environment. */
export function miniHarness(root: string): HarnessSettings {
  return {
    directory: join(root, "harnesses", "mini"),
    argv: ["node", "/opt/harness/mini.cjs"],
    environment: {
      OPENAI_BASE_URL: "{model_url}",
      OPENAI_API_KEY: "{token}",
      OPENAI_MODEL: "{model}",
      MINI_INSTRUCTION: "{instruction}",
      MINI_WORKDIR: "{workspace}",
      // Nobody watches these replies grow; whole ones cost less CPU per trial.
      MINI_STREAM: "0",
    },
    // From the README of the harness; what is not listed is a crash of the agent.
    exitCodes: { "3": "proxy-failure", "6": "turn-limit" },
  };
}
