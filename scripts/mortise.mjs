#!/usr/bin/env node
/**
 * Owns the `mortise` command at the root: any Node ≥ 20 may start it, Node 24 runs it.
 * Prepares the clone first when it was never installed and built; otherwise starts at once.
 */
import { runCli } from "./bootstrap/commands.mjs";
import { reportFailure } from "./bootstrap/operator-error.mjs";
import { isPrepared } from "./bootstrap/paths.mjs";
import { prepare } from "./bootstrap/prepare.mjs";

const args = process.argv.slice(2);
try {
  if (!isPrepared()) await prepare();
  process.exitCode = await runCli(args);
} catch (error) {
  process.exitCode = reportFailure(error, { json: args.includes("--json") });
}
