/** Owns the gRPC face of the proxy: what the scheduler asks about sessions and engines. */
import { type OpenSessionRequest, ProxyService, subjectToken } from "@mortise/contracts";
import { implement, type ServiceBinding } from "@mortise/kernel";
import { consequencesOf } from "./engine/consequences.js";
import type { RunPolicies } from "./run-policy.js";
import type { ListenerKeys } from "./session/listener-key.js";
import type { Sessions } from "./session/sessions.js";
import type { SessionTerms, SessionTokens } from "./session/token.js";

export interface RpcOptions {
  readonly sessions: Sessions;
  readonly policies: RunPolicies;
  readonly tokens: SessionTokens;
  readonly listenerKeys: ListenerKeys;
  /** host:port of the model API. */
  readonly modelAddress: string;
}

export function proxyRpc({
  sessions,
  policies,
  tokens,
  listenerKeys,
  modelAddress,
}: RpcOptions): ServiceBinding {
  return implement(ProxyService, {
    async openSession(request) {
      const terms = termsOf(request);
      const session = await sessions.obtain(terms);
      // A session opened before keeps its first terms, so that the same trial gets the same token.
      const token = tokens.issue(session.terms);
      const listenerKey = listenerKeys.issue(session.terms);
      return { session: terms.trial, token, modelAddress, model: session.modelName, listenerKey };
    },
    async sealSession({ run, trial }) {
      const { record, sequence } = await sessions.seal(
        subjectToken("run", run),
        subjectToken("trial", trial),
      );
      return { seal: record, sealSequence: BigInt(sequence) };
    },
    async getProxyStatus() {
      const engines = [...policies.all].map(({ run, engine, config }) => {
        const status = engine.status();
        return {
          engine: engine.id,
          run,
          version: BigInt(status.loaded?.version ?? 0),
          sha256: status.loaded?.sha256 ?? "",
          activeTurns: status.activeTurns,
          computeCpuMs: status.computeCpuMs,
          sampledTokens: BigInt(status.sampledTokens),
          consequences: consequencesOf(engine.capabilities, config.rollout),
        };
      });
      return { engines, openSessions: sessions.openCount };
    },
  });
}

function termsOf(request: OpenSessionRequest): SessionTerms {
  const run = subjectToken("run", request.run);
  const trial = subjectToken("trial", request.trial);
  const { budget, sampling } = request;
  return {
    run,
    trial,
    isEvaluation: request.evaluation,
    rngKey: request.rngKey === "" ? `${run}/${trial}` : request.rngKey,
    ...(sampling?.temperature !== undefined && { temperature: sampling.temperature }),
    ...(sampling?.maxTokens !== undefined && { maxTokensPerTurn: sampling.maxTokens }),
    ...(request.throughListener && { isThroughListener: true }),
    budget: {
      turns: budget?.turns ?? 0,
      promptTokens: Number(budget?.promptTokens ?? 0),
      responseTokens: Number(budget?.responseTokens ?? 0),
      wallClockMs: budget?.wallClockMs ?? 0,
      turnsWithoutCall: budget?.turnsWithoutCall ?? 0,
    },
  };
}
