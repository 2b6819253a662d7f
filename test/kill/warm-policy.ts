/**
 * Owns the policy these runs start from: warm-started once by a quick start of no steps, then kept. A policy
 * with random weights solves nothing, all its groups are dropped, and a run of it would prove little.
 */
import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { QuickstartProcess, root } from "./quickstart-process.js";

export const warmPolicy = join(root, ".mortise", "test", "warm-policy");

/** Fewer supervised steps than the recipe: some trials must succeed and some fail, no more. */
const WARM_START = ["--steps", "0", "--eval-attempts", "0", "--set", "warmStart.steps=120"];

export default async function setup(): Promise<void> {
  if (process.platform !== "linux")
    throw new Error("the kill tests find a run's processes in /proc: Linux only");
  if (existsSync(warmPolicy)) return;
  const run = await QuickstartProcess.start(WARM_START);
  const { code, stderr } = await run.ended;
  if (code !== 0) throw new Error(`the warm start ended with ${code}: ${stderr}`);
  mkdirSync(dirname(warmPolicy), { recursive: true });
  cpSync(join(run.directory, "state", "trainer", run.runId, "0"), `${warmPolicy}.partial`, {
    recursive: true,
  });
  renameSync(`${warmPolicy}.partial`, warmPolicy);
  rmSync(run.directory, { recursive: true });
}
