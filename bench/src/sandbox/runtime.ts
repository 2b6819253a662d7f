/**
 * Measures what a harness's runtime costs a trial: installed for it, or made ready once and mounted read-only. The
 * harness is pi, from npm with everything in npm's cache; what the network takes comes on top of installing.
 */
import { mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { median, rounded } from "../proxy/statistics.js";
import { NOTHING, run, type SandboxStand, timed } from "./stand.js";
import { program } from "./unpack.js";

/** As the adapter of pi has it. */
const PACKAGE = "@mariozechner/pi-coding-agent@0.73.1";
const PROGRAM = "node_modules/@mariozechner/pi-coding-agent/dist/cli.js";
const TARGET = "/opt/harness";

export async function measureRuntime(
  stand: SandboxStand,
  directory: string,
  rounds: number,
): Promise<object> {
  const shared = path.join(directory, "shared");
  await install(shared);
  const times: Record<string, number[]> = { mounted: [], installed: [], harnessStart: [] };
  for (let round = 0; round < rounds; round++) {
    const mounted = await readySandbox(stand, shared);
    times.mounted!.push(mounted.ms);
    times.harnessStart!.push(mounted.harnessStartMs);
    const own = path.join(directory, `own-${round}`);
    const { ms } = await timed(() => install(own));
    times.installed!.push(ms + (await readySandbox(stand, own)).ms);
    rmSync(own, { recursive: true, force: true });
  }
  const [mounted, installed, harnessStart] = [times.mounted!, times.installed!, times.harnessStart!].map(
    median,
  );
  return {
    rounds,
    package: PACKAGE,
    milliseconds: times,
    p50: {
      mounted: rounded(mounted!, 0),
      installed: rounded(installed!, 0),
      harnessStart: rounded(harnessStart!, 0),
    },
    installedAgainstMounted: {
      untilReady: rounded(installed! / mounted!, 0),
      untilStarted: rounded((installed! + harnessStart!) / (mounted! + harnessStart!), 1),
    },
  };
}

async function install(into: string): Promise<void> {
  mkdirSync(into, { recursive: true });
  const quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"];
  await program("npm", ["install", ...quiet, "--prefix", into, PACKAGE]);
}

/** Until the harness can be launched in a sandbox, and how long it then takes to say its version. */
async function readySandbox(
  stand: SandboxStand,
  runtime: string,
): Promise<{ ms: number; harnessStartMs: number }> {
  const { ms, value: sandbox } = await timed(async () => {
    const made = await stand.create({ mounts: [{ source: runtime, target: TARGET }] });
    await run(made, NOTHING);
    return made;
  });
  const version = ["/usr/bin/node", path.join(TARGET, PROGRAM), "--version"] as const;
  const { ms: harnessStartMs } = await timed(() => run(sandbox, version));
  await sandbox.destroy();
  return { ms, harnessStartMs };
}
