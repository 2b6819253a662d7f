/** Two proxies serve one run and one of them dies for good: its trials end elsewhere or are tried again. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { TrialState } from "@mortise/contracts";
import { findServices } from "@mortise/kernel";
import { expect, test } from "vitest";
import { busOf, moment } from "./in-flight.js";
import { type QuickstartProcess, root } from "./quickstart-process.js";
import { expectFinished, startShortRun } from "./short-run.js";

const INSTANCE = "second";

test("a second proxy takes trials, and its death costs none of them", async () => {
  const run = await startShortRun();
  const { child, address } = await startSecondProxy(run);
  try {
    await moment(run, { trials: 1, state: TrialState.RUNNING, proxyAddress: address });
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  const { report } = await expectFinished(run, await run.ended);
  expect(report.services.find(({ name }) => name === "proxy")?.restarts).toBe(0);
});

/** Nobody supervises it. Resolves with the address the scheduler knows it by. */
async function startSecondProxy(run: QuickstartProcess): Promise<{ child: ChildProcess; address: string }> {
  const bus = await busOf(run);
  const log = openSync(join(run.directory, "logs", "second-proxy.log"), "a");
  const main = join(root, "services", "proxy", "dist", "main.js");
  const site = join(run.directory, "site.toml");
  const argv = [main, "--site", site, "--set", "proxy.port=0", "--instance", INSTANCE];
  const child = spawn(process.execPath, argv, { stdio: ["ignore", log, log] });
  try {
    for (;;) {
      const found = (await findServices(bus, "proxy")).find(({ instance }) => instance === INSTANCE);
      if (found !== undefined) return { child, address: found.rpcAddress };
      if (child.exitCode !== null) throw new Error(`the second proxy ended with ${child.exitCode}`);
      await sleep(100);
    }
  } finally {
    await bus.close();
  }
}
