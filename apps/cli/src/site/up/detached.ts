/**
 * Owns `site up` in the background: started in a session of its own, waited for until everything is up, and told to
 * end. Does not start services itself.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type ErrorCode, MortiseError } from "@mortise/contracts";
import { readSiteConfig, sleep } from "@mortise/kernel";
import { pathsOfSite } from "../files/site-paths.js";
import { type Owner, readOwner } from "../owner-lock.js";
import { withoutMeaning } from "../refusal.js";

const LOOK_INTERVAL_MS = 100;
/** Sandboxes, verifier, trainer, proxy and bus drain one after the other, each within 28 s. */
const DRAIN_LIMIT_MS = 150_000;

export interface Detached {
  readonly pid: number;
  readonly log: string;
}

/** Resolves when the site is up; rejects with what its process said when it ended before. */
export async function upInBackground(siteFile: string): Promise<Detached> {
  const { logs, owner, directory } = pathsOfSite(siteFile, await readSiteConfig(siteFile));
  await mkdir(logs, { recursive: true, mode: 0o700 });
  const log = join(logs, "site.log");
  const result = join(logs, "site.out");
  const child = launch(["site", "up", "--site", siteFile, "--json"], { directory, log, result });
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  while (!hasEnded) {
    const found = await readOwner(owner);
    if (found?.isRunning && found.owner.pid === child.pid && found.owner.isReady) {
      child.unref();
      return { pid: found.owner.pid, log };
    }
    await Promise.race([ended, sleep(LOOK_INTERVAL_MS)]);
  }
  throw await refusalIn(result, log);
}

function launch(
  args: readonly string[],
  { directory, log, result }: { directory: string; log: string; result: string },
): ChildProcess {
  const out = openSync(result, "w", 0o600);
  const err = openSync(log, "a", 0o600);
  try {
    return spawn(process.execPath, [process.argv[1]!, ...args], {
      cwd: directory,
      detached: true,
      stdio: ["ignore", out, err],
    });
  } finally {
    closeSync(out);
    closeSync(err);
  }
}

/** Its last line of output is the error, as `--json` has it. */
async function refusalIn(result: string, log: string): Promise<MortiseError> {
  const last = (await readFile(result, "utf8").catch(() => "")).trimEnd().split("\n").at(-1) ?? "";
  try {
    const { error } = JSON.parse(last) as {
      error: { code: ErrorCode; field?: string; message: string; fix: string };
    };
    const { code, field, message, fix } = error;
    const said = withoutMeaning(code, message);
    return new MortiseError({
      code,
      message: said,
      fix,
      ...(field === undefined ? {} : { detail: { field } }),
    });
  } catch {
    return new MortiseError({
      code: "MORTISE_OPERATOR_SERVICE_DOWN",
      message: `The site did not come up; see ${log}.`,
      detail: { field: "--site" },
    });
  }
}

export type DownOutcome =
  | { readonly was: "up" | "down" }
  /** Its process had died; what is left of it ends by itself. */
  | { readonly was: "dead"; readonly owner: Owner };

/** Asks the site's process to drain and resolves when it has ended. */
export async function takeDown(siteFile: string): Promise<DownOutcome> {
  const { owner: file } = pathsOfSite(siteFile, await readSiteConfig(siteFile));
  const found = await readOwner(file);
  if (found === undefined) return { was: "down" };
  if (!found.isRunning) return { was: "dead", owner: found.owner };
  const { pid, birth } = found.owner;
  process.kill(pid, "SIGTERM");
  for (let waited = 0; waited < DRAIN_LIMIT_MS; waited += LOOK_INTERVAL_MS) {
    const now = await readOwner(file);
    if (now === undefined || !now.isRunning || now.owner.pid !== pid || now.owner.birth !== birth)
      return { was: "up" };
    await sleep(LOOK_INTERVAL_MS);
  }
  throw new MortiseError({
    code: "MORTISE_OPERATOR_SITE_UP",
    message: `Process ${pid} still drains after ${DRAIN_LIMIT_MS / 1000} s.`,
    fix: `Run \`mortise site down\` once more, which kills what is left.`,
    detail: { field: "--site" },
  });
}
