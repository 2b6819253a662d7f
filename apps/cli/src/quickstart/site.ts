/** Owns the site file of a quick start: everything on loopback, free ports, the bundled tasks and harness. */
import { join } from "node:path";
import type { SiteConfig } from "@mortise/contracts";
import { stringify } from "smol-toml";
import { writePrivate } from "../provision/identity.js";
import type { SandboxRuntime } from "../provision/runc.js";
import type { ProjectPaths, RunPaths } from "./run-directory.js";

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
    harness: { mini: miniHarness(project.root) },
    sandbox: { backend: facts.sandbox.backend, runc: facts.sandbox.runc },
  };
  await writePrivate(paths.site, stringify(site));
}

/** How the bundled harness is told about its model: as any OpenAI client is, by its environment. */
export function miniHarness(root: string): SiteConfig["harness"][string] {
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
