/**
 * Owns how a site looks while it is up: a block that is redrawn on a terminal, plain lines elsewhere, on standard
 * error. Gathers nothing.
 */
import type { SiteConfig } from "@mortise/contracts";
import type { ServicePresence } from "@mortise/kernel";
import { describeProcess } from "../../quickstart/view.js";
import type { ProcessStatus } from "../../supervisor/supervisor.js";
import { elapsed, TerminalBlock } from "../../terminal-block.js";

export interface SiteFacts {
  readonly siteFile: string;
  readonly site: SiteConfig;
  readonly isUp: boolean;
  readonly natsVersion: string;
  readonly processes: readonly ProcessStatus[];
  readonly presences: readonly ServicePresence[];
}

export interface SiteView {
  note(line: string): void;
  update(facts: SiteFacts): void;
  end(): void;
}

/** The block, one line an element. */
export function describeSite({
  siteFile,
  site,
  isUp,
  natsVersion,
  processes,
  presences,
}: SiteFacts): string[] {
  const fact = (service: string, name: string) =>
    presences.find((presence) => presence.service === service)?.facts[name];
  const model = fact("proxy", "modelAddress");
  const backend = fact("sandbox-manager", "backend");
  const insecure = fact("sandbox-manager", "insecure") === "true" ? " (INSECURE: isolates nothing)" : "";
  const runs = runsOn(presences);
  return [
    `site         ${siteFile}: ${isUp ? "up" : "starting"}`,
    `services     ${processes.map(describeProcess).join("  ")}`,
    `bus          ${site.nats.url}, nats-server ${natsVersion}`,
    ...(model === undefined ? [] : [`model API    http://${model}`]),
    ...(backend === undefined ? [] : [`sandboxes    ${backend}${insecure}`]),
    `harnesses    ${Object.keys(site.harness).join(", ") || "none"}`,
    `runs         ${runs.length === 0 ? "none now" : runs.join(", ")}`,
  ];
}

/** Runs whose schedulers are live. */
export function runsOn(presences: readonly ServicePresence[]): string[] {
  const runs = presences.flatMap(({ service, facts }) => (service === "scheduler" ? (facts.run ?? []) : []));
  return [...new Set(runs)].sort();
}

/** Redraws the block in place. */
export class SiteTerminalView implements SiteView {
  readonly #block = new TerminalBlock();
  readonly #startedAt = performance.now();

  note(line: string): void {
    this.#block.note(line);
  }

  update(facts: SiteFacts): void {
    const [first, ...rest] = describeSite(facts);
    const hint = facts.isUp ? ["Ctrl-C drains and ends it."] : [];
    this.#block.show([`${first}  ${elapsed(performance.now() - this.#startedAt)}`, ...rest, ...hint]);
  }

  end(): void {
    this.#block.end();
  }
}

/** Prints the block once, when the site is up, and afterwards the runs that come and go. */
export class SiteLineView implements SiteView {
  readonly #print: (line: string) => void;
  #isTold = false;
  #runs: readonly string[] = [];

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  note(line: string): void {
    this.#print(line);
  }

  update(facts: SiteFacts): void {
    if (!facts.isUp) return;
    if (!this.#isTold) for (const line of describeSite(facts)) this.#print(line);
    this.#isTold = true;
    const runs = runsOn(facts.presences);
    for (const run of runs) if (!this.#runs.includes(run)) this.#print(`run ${run} is here`);
    for (const run of this.#runs) if (!runs.includes(run)) this.#print(`run ${run} is gone`);
    this.#runs = runs;
  }

  end(): void {}
}
