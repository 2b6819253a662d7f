/**
 * Owns the choice of a run's engine, as its configuration says, and the statement of what that engine can and
 * cannot do. Does not decide which run is served, or with which weights.
 */
import type { RunConfig } from "@mortise/contracts";
import type { ServiceContext } from "@mortise/kernel";
import type { Checkpoint } from "@mortise/policy";
import { consequencesOf } from "./consequences.js";
import { EmbeddedEngine } from "./embedded-engine.js";
import { EnginePool } from "./engine-pool.js";
import { RecordingEngine } from "./recording/recording-engine.js";
import { ReplayingEngine } from "./recording/replaying-engine.js";
import { readScript } from "./scripted/script.js";
import { ScriptedEngine } from "./scripted/scripted-engine.js";
import type { Engine } from "./types.js";
import { VllmEngine } from "./vllm/vllm-engine.js";

/** The key of vLLM servers started with one. In the environment, so that no file and no record holds it. */
const KEY_VARIABLE = "MORTISE_ENGINE_KEY";

export type EngineHost = Pick<ServiceContext, "site" | "instance" | "log" | "clock">;

/**
 * @throws MortiseError MORTISE_CONFIG_* for a file that cannot be used, MORTISE_PROVIDER_ENGINE for a server
 *   that does not answer or cannot give token ids
 */
export async function openEngine(
  host: EngineHost,
  config: RunConfig,
  checkpoint: Checkpoint,
): Promise<Engine> {
  const bare = await openBare(host, config, checkpoint);
  const record = "record" in config.engine ? config.engine.record : undefined;
  const engine = record === undefined ? bare : await RecordingEngine.open(bare, record, host.clock);
  const { temperature } = config.rollout;
  host.log.info({
    event: "engine.opened",
    run: config.run.id,
    engine: engine.id,
    kind: config.engine.kind,
    capabilities: engine.capabilities,
    consequences: consequencesOf(engine.capabilities, { temperature }),
    ...(engine instanceof RecordingEngine && { recording: engine.file }),
  });
  return engine;
}

async function openBare(host: EngineHost, config: RunConfig, checkpoint: Checkpoint): Promise<Engine> {
  const { site, instance, log, clock } = host;
  const id = `${instance}_${config.run.id}`;
  switch (config.engine.kind) {
    case "embedded": {
      const { engineWorkers: workers, maxBatch, cacheTokens } = site.proxy;
      return new EmbeddedEngine({ id, workers, config: checkpoint.config, maxBatch, cacheTokens, log });
    }
    case "vllm": {
      const { engine: settings, run } = config;
      const key = process.env[KEY_VARIABLE];
      const shared = { run: run.id, settings, checkpoint, key, log, clock };
      const { urls } = settings;
      if (urls.length === 1) return VllmEngine.open({ id, url: urls[0]!, ...shared });
      const open = (url: string, at: number) => VllmEngine.open({ id: `${id}_${at}`, url, ...shared });
      return new EnginePool({ id, members: await openAll(urls, open), log, clock });
    }
    case "scripted": {
      const choose = await readScript(config.engine.file, checkpoint.tokenizer);
      return new ScriptedEngine({ id, clock, choose });
    }
    case "replay":
      return ReplayingEngine.open(config.engine.file, { id, clock, isTimed: true });
  }
}

/** All or none: engines that did open are closed when one does not. */
async function openAll(
  urls: readonly string[],
  open: (url: string, at: number) => Promise<Engine>,
): Promise<Engine[]> {
  const opened = await Promise.allSettled(urls.map(open));
  const engines = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = opened.find((one) => one.status === "rejected");
  if (!failed) return engines;
  await Promise.all(engines.map((engine) => engine.close()));
  throw failed.reason;
}
