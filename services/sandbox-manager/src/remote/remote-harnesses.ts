/**
 * Owns the harnesses of the site file that run in remote runtimes: checked when the service starts, an agent each.
 * Does not speak to them.
 */
import type { RemoteHarness, SiteConfig } from "@mortise/contracts";
import type { Clock } from "@mortise/kernel";
import { A2aAgent } from "./a2a-agent.js";
import type { RemoteAgent } from "./agent.js";
import { AgentCoreAgent } from "./agentcore-agent.js";
import { assertPrivate, tokenIn } from "./bounded-fetch.js";

export interface ConfiguredRemote {
  /** As the site file names it. */
  readonly name: string;
  /** As the runtime names it. */
  readonly harness: string;
  readonly agent: RemoteAgent;
  readonly settings: RemoteHarness["remote"];
}

export class RemoteHarnesses {
  readonly #remotes: ReadonlyMap<string, ConfiguredRemote>;

  /** @throws MortiseError MORTISE_CONFIG_INVALID */
  constructor({ harness }: Pick<SiteConfig, "harness">, clock: Clock) {
    this.#remotes = new Map(
      Object.entries(harness).flatMap(([name, given]) =>
        "remote" in given ? [[name, configured(name, given.remote, clock)]] : [],
      ),
    );
  }

  /** Undefined for a harness that runs in sandboxes of ours, and for none at all. */
  get(name: string): ConfiguredRemote | undefined {
    return this.#remotes.get(name);
  }
}

function configured(name: string, settings: RemoteHarness["remote"], clock: Clock): ConfiguredRemote {
  const field = `harness.${name}.remote`;
  const { url, plainHttp, modelUrl, tokenFile, protocol, harness } = settings;
  assertPrivate(url, plainHttp, `${field}.url`);
  // Places are filled in by each launch; a host of loopback stands for any that is.
  assertPrivate(modelUrl.replace(/\{(address|host|port)\}/g, "127.0.0.1"), plainHttp, `${field}.modelUrl`);
  if (tokenFile !== undefined) tokenIn(tokenFile, `${field}.tokenFile`);
  const agent =
    protocol === "a2a" ? new A2aAgent(settings, field, clock) : new AgentCoreAgent(settings, field);
  return { name, harness: harness ?? name, agent, settings };
}
