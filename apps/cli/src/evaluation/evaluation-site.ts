/**
 * Owns where an evaluation runs: a site that is up, or one of its own that is brought up for as long as it lasts and is
 * kept with its streams, so that a resumed evaluation finds what has ended. Does not run anything on it.
 */
import { MortiseError, type SiteConfig } from "@mortise/contracts";
import type { Bus } from "@mortise/kernel";
import { prepareSite } from "../site/init/prepare-site.js";
import type { Interrupts } from "../site/interrupts.js";
import { openSite } from "../site/open-site.js";
import { withSiteUp } from "../site/up/bring-up.js";
import { type EvaluationWish, evaluationPaths } from "./wish.js";

export interface EvaluationSite {
  readonly file: string;
  readonly config: SiteConfig;
  /** As its file names it. */
  readonly harness: string;
  readonly bus: Bus;
  /** Aborted when the evaluation is interrupted, or its own site cannot be kept up. */
  readonly stop: AbortSignal;
}

export interface SiteTools {
  readonly note: (line: string) => void;
  readonly interrupts: Interrupts;
}

export async function withEvaluationSite<T>(
  wish: EvaluationWish,
  { note, interrupts }: SiteTools,
  use: (site: EvaluationSite) => Promise<T>,
): Promise<T> {
  if (wish.site !== undefined) return open(wish.site, wish.harness, { note, stop: interrupts.signal }, use);
  if (wish.tasks === undefined)
    throw new MortiseError({
      code: "MORTISE_OPERATOR_USAGE",
      message: "--tasks is absent, and so is --site.",
      fix: "Name a directory of tasks or an index, or the site whose tasks are to be attempted.",
      detail: { field: "--tasks" },
    });
  // The checkpoint tells how long a context the harness may believe in. The run file written beside the site is
  // replaced by the evaluation's.
  const prepared = await prepareSite({
    ...wish,
    directory: evaluationPaths(wish.runId).directory,
    heldOut: 0,
    natsUrl: process.env.NATS_URL || undefined,
    note,
  });
  for (const line of prepared.warnings) note(line);
  const view = { note, update: () => {}, end: () => {} };
  return withSiteUp(prepared.site, view, (fatal) =>
    open(prepared.site, undefined, { note, stop: AbortSignal.any([fatal, interrupts.signal]) }, use),
  );
}

/** @param harness the site's only one when undefined */
async function open<T>(
  file: string,
  harness: string | undefined,
  { note, stop }: { note: (line: string) => void; stop: AbortSignal },
  use: (site: EvaluationSite) => Promise<T>,
): Promise<T> {
  const opened = await openSite(file);
  try {
    const absent = opened.absent();
    if (absent.length > 0) note(`not up: ${absent.join(", ")}; attempts wait for what they need`);
    const { config, bus } = opened;
    return await use({ file, config, harness: harness ?? Object.keys(config.harness)[0]!, bus, stop });
  } finally {
    await opened.close();
  }
}
