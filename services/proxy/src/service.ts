/** Owns the wiring of the proxy. No behaviour of its own. */

import type { RunConfig } from "@mortise/contracts";
import type { Running, ServiceContext, ServiceDefinition } from "@mortise/kernel";
import type { Checkpoint } from "@mortise/policy";
import { openEngine } from "./engine/open-engine.js";
import type { Engine } from "./engine/types.js";
import { WeightsFeed } from "./engine/weights-feed.js";
import { Bodies } from "./front/body.js";
import { ModelFront } from "./front/model-front.js";
import { engineComputeMs, exposeState, proxyMetrics } from "./metrics.js";
import { RenderPool } from "./rendering/render-pool.js";
import { proxyRpc } from "./rpc.js";
import { RunPolicies } from "./run-policy.js";
import { ListenerKeys } from "./session/listener-key.js";
import { Sessions } from "./session/sessions.js";
import { Spool } from "./session/spool.js";
import { SessionTokens } from "./session/token.js";

/** The process is given 25 s; what is still being sampled then is cut, and retried by the harness. */
const DRAIN_MS = 15_000;

export type MakeEngine = (run: string, checkpoint: Checkpoint, config: RunConfig) => Engine | Promise<Engine>;

export const proxyService: ServiceDefinition = {
  name: "proxy",
  needsRun: false,
  start: (context) =>
    startProxy(context, (_run, checkpoint, config) => openEngine(context, config, checkpoint)),
};

/** Starts the proxy with engines of the caller's choice. */
export async function startProxy(context: ServiceContext, makeEngine: MakeEngine): Promise<Running> {
  const { bus, log, clock, site, bearer } = context;
  const metrics = proxyMetrics(context.metrics);
  const feed = new WeightsFeed(bus, log);
  const renderPool = new RenderPool({ clock, log });
  const policies = new RunPolicies({ bus, log, clock, feed, renderPool, makeEngine });
  const { host, port, spoolTurns, spoolBytes } = site.proxy;
  const spool = new Spool({ maxTurns: spoolTurns, maxBytes: spoolBytes, clock, log });
  const sessions = new Sessions({ bus, log, clock, metrics, policies, spool });
  const tokens = new SessionTokens(bearer);
  const listenerKeys = new ListenerKeys(bearer);
  const bodies = new Bodies(renderPool);
  const options = { host, port, sessions, tokens, listenerKeys, bodies, clock, log, metrics };
  const front = await ModelFront.start(options);
  await feed.start((run) => {
    policies.open(run).catch((error: unknown) => log.error({ event: "policy.not-opened", run, err: error }));
  });
  const openSessions = () => sessions.openCount;
  exposeState(context.metrics, { openSessions, policies, spool, bodies, renderPool });
  const modelAddress = `${site.proxy.advertise ?? host}:${front.port}`;
  return {
    bindings: [proxyRpc({ sessions, policies, tokens, listenerKeys, modelAddress })],
    presence: { modelAddress },
    computeCpuMs: () => engineComputeMs(policies),
    async drain() {
      front.drain();
      await sessions.drain(AbortSignal.timeout(DRAIN_MS));
      await front.stop();
      await feed.stop();
      await policies.close();
      await renderPool.close();
    },
  };
}
