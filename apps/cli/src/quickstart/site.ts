/**
 * Owns the site of a quick start: free ports, the bundled tasks and harness. The text is site/site-file.ts.
 * The model API keeps its port for the life of the run: sandboxes were told where it is.
 */
import { existsSync } from "node:fs";
import { readSiteConfig } from "@mortise/kernel";
import { writePrivate } from "../provision/identity.js";
import type { SandboxRuntime } from "../provision/runc.js";
import { miniHarness } from "../site/files/mini-harness.js";
import { siteFileText } from "../site/files/site-file.js";
import type { SitePaths } from "../site/files/site-paths.js";
import { freePort, isFree } from "../site/ports.js";
import type { ProjectPaths } from "../site/project-paths.js";

export interface SiteFacts {
  readonly natsUrl: string;
  readonly tasksDirectory: string;
  readonly sandbox: SandboxRuntime;
}

export async function writeSiteFile(
  project: ProjectPaths,
  paths: SitePaths,
  { natsUrl, tasksDirectory, sandbox }: SiteFacts,
): Promise<void> {
  const { identity, state } = paths;
  const modelPort = await keptPort(paths);
  const harness = { mini: miniHarness(project.root) };
  const facts = { natsUrl, identity, state, tasksDirectory, modelPort, harness, sandbox };
  await writePrivate(paths.site, siteFileText(facts));
}

/** The port an earlier start of the run used, if it is still free, else any free one. */
async function keptPort({ site }: SitePaths): Promise<number> {
  const earlier = existsSync(site) ? (await readSiteConfig(site)).proxy.port : 0;
  return earlier !== 0 && (await isFree("127.0.0.1", earlier)) ? earlier : freePort();
}
