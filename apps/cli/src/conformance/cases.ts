/**
 * Owns the standard cases: what the policy does in each, what goes wrong on the way, and what must come of it.
 * Where harnesses differ, the expectation is the behaviour their adapter states.
 */
import { ExclusionReason, FinishReason, MortiseError, TurnRole } from "@mortise/contracts";
import {
  chatDialect,
  type Dialect,
  messagesDialect,
  type Refusal,
  responsesDialect,
} from "@mortise/dialects";
import {
  type HarnessAdapter,
  isLacking,
  type Lacks,
  type ToolVocabulary,
  type WireApi,
} from "@mortise/harness";
import {
  type Claim,
  completed,
  ended,
  mainThread,
  nothingBeside,
  nothingSampledTwice,
  type Observed,
  oneConversation,
  onePath,
  reached,
  reachedErrands,
  relationOf,
  sideThreads,
  streamed,
} from "./observed.js";
import { act, bulk, type Plan } from "./plan.js";

export interface ConformanceCase {
  readonly name: string;
  /** The reason when the harness cannot have this case. */
  lacks(adapter: HarnessAdapter, wireApi: WireApi): string | undefined;
  plan: Plan;
  /** Window the harness is told, given its first prompt's tokens; WIDE when absent. */
  told?(adapter: HarnessAdapter, firstPromptTokens: number): number;
  /** Window the model has; WIDE when absent. */
  window?(firstPromptTokens: number, vocabulary: ToolVocabulary): number;
  /** Answers that stand in for the proxy's first ones. */
  refusals?(wireApi: WireApi): readonly Refusal[];
  claims(adapter: HarnessAdapter, wireApi: WireApi): readonly Claim[];
}

/** Tokens; beyond what any case fills. */
export const WIDE = 400_000;
const SLOW_MS = 20_000;
/** Room behind the first prompt in which one bulky result fits and two do not. */
const NARROW_TOKENS = 14_000;

const DIALECTS: Readonly<Record<WireApi, Dialect>> = {
  chat: chatDialect,
  responses: responsesDialect,
  messages: messagesDialect,
};

const always = () => undefined;
const reasonOf = (value: Lacks | unknown) => (isLacking(value) ? value.lacks : undefined);

const severalTools: ConformanceCase = {
  name: "several-tools",
  lacks: always,
  plan: { main: [act(1), act(2), act(3)] },
  claims: () => [completed, reached(1, 2, 3), oneConversation(4), nothingBeside, streamed],
};

const parallelTools: ConformanceCase = {
  name: "parallel-tools",
  lacks: ({ behaviour }) => reasonOf(behaviour.parallelCalls),
  plan: { main: [{ from: 1, to: 3, form: "act" }] },
  claims: () => [completed, reachedInAnyOrder(1, 2, 3), oneConversation(2), nothingBeside, streamed],
};

const subAgent: ConformanceCase = {
  name: "sub-agent",
  lacks: ({ behaviour }) => reasonOf(behaviour.subAgent),
  plan: { main: [{ from: 1, to: 1, form: "delegate" }, act(2)], side: [act(1)] },
  claims: () => [completed, reached(2), reachedErrands(1), oneSideConversation(2), onePath, streamed],
};

const compaction: ConformanceCase = {
  name: "compaction",
  lacks: ({ behaviour }) => reasonOf(behaviour.compaction),
  plan: { main: [bulk(1), bulk(2), bulk(3), bulk(4), bulk(5), bulk(6)] },
  told: ({ behaviour }, firstPromptTokens) =>
    isLacking(behaviour.compaction) ? WIDE : behaviour.compaction.window(firstPromptTokens),
  claims: ({ behaviour }) => [
    completed,
    reached(1, 2, 3, 4, 5, 6),
    isLacking(behaviour.compaction) || behaviour.compaction.when === "within" ? compacted : summarised,
    nothingBeside,
    streamed,
  ],
};

const overflow: ConformanceCase = {
  name: "overflow",
  lacks: always,
  plan: { main: [bulk(1), bulk(2), bulk(3)] },
  // Where no tool says much, a reply would stop at the limit before a request is too long: refuse the first one.
  window: (firstPromptTokens, { run }) => (run ? firstPromptTokens + NARROW_TOKENS : firstPromptTokens - 1),
  claims: ({ behaviour }) =>
    behaviour.overflow === "compacts"
      ? [ended, refusedOnce, compacted, reached(1, 2, 3), nothingBeside]
      : [ended, refusedOnce, notCompleted, nothingBeside],
};

const lengthInText: ConformanceCase = {
  name: "length-in-text",
  lacks: ({ behaviour }) => reasonOf(behaviour.truncatedText),
  plan: { main: [act(1), act(2, { kind: "stops-in-text" }), act(3)] },
  claims: ({ behaviour }) =>
    behaviour.truncatedText === "continues"
      ? [completed, onePath, nothingBeside, wasTruncated]
      : [ended, reached(1), oneConversation(2), nothingBeside, wasTruncated],
};

const lengthInCall: ConformanceCase = {
  name: "length-in-call",
  lacks: ({ behaviour }) => reasonOf(behaviour.truncatedCall),
  plan: { main: [act(1), act(2, { kind: "stops-in-call" }), act(3)] },
  claims: ({ behaviour }) =>
    behaviour.truncatedCall === "continues"
      ? [completed, nothingBeside, wasTruncated]
      : [ended, reached(1), oneConversation(2), nothingBeside, wasTruncated],
};

const overloaded: ConformanceCase = {
  name: "overloaded",
  lacks: always,
  plan: { main: [act(1), act(2)] },
  refusals(wireApi) {
    const error = new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "The engine is busy." });
    const refusal = DIALECTS[wireApi].refuse(error, "conformance");
    return [refusal, refusal];
  },
  claims: () => [completed, reached(1, 2), oneConversation(3), nothingBeside, streamed],
};

const engineFails: ConformanceCase = {
  name: "engine-fails",
  lacks: always,
  plan: { main: [act(1), act(2, { kind: "engine-fails", afterTokens: 0 }), act(3)] },
  claims: () => [completed, reached(1, 2, 3), onePath, nothingBeside],
};

const cutAtStart: ConformanceCase = {
  name: "cut-at-start",
  lacks: ({ behaviour }) => (behaviour.streams ? undefined : "replies are not streamed"),
  plan: { main: [act(1), act(2, { kind: "cut-at-start" }), act(3)] },
  claims: ({ behaviour }, wireApi) => [
    ...[completed, wasCut, reached(1, 2, 3), nothingSampledTwice, nothingBeside],
    behaviour.keepsBrokenText?.includes(wireApi) ? branchesOnce : onePath,
  ],
};

const cutBehindCall: ConformanceCase = {
  name: "cut-behind-call",
  lacks: ({ behaviour }) => (behaviour.streams ? undefined : "replies are not streamed"),
  plan: { main: [act(1), { from: 2, to: 3, form: "act", fault: { kind: "cut-behind-call" } }] },
  claims: ({ behaviour }) =>
    behaviour.cut === "adopts"
      ? [completed, wasCut, reachedInAnyOrder(1, 2, 3), onePath, adoptedInPart, nothingBeside]
      : [completed, wasCut, nothingSampledTwice, nothingBeside],
};

const slowFirstToken: ConformanceCase = {
  name: "slow-first-token",
  lacks: always,
  plan: { main: [act(1), act(2, { kind: "slow", ms: SLOW_MS })] },
  claims: () => [completed, reached(1, 2), oneConversation(3), nothingBeside, streamed],
};

/** The first one also measures the harness's first prompt. */
export const CASES: readonly ConformanceCase[] = [
  severalTools,
  parallelTools,
  subAgent,
  compaction,
  overflow,
  lengthInText,
  lengthInCall,
  overloaded,
  engineFails,
  cutAtStart,
  cutBehindCall,
  slowFirstToken,
];

function reachedInAnyOrder(...numbers: readonly number[]): Claim {
  const claim = reached(...numbers);
  return (observed) => claim({ ...observed, marks: [...observed.marks].sort() });
}

/** A sub-agent's calls are one trained thread of their own. */
function oneSideConversation(turns: number): Claim {
  return (observed) => {
    const threads = sideThreads(observed);
    if (threads.length !== 1) return `${threads.length} threads beside the main one are trained, not 1`;
    const relations = threads[0]!.map(relationOf).join(" ");
    const wanted = ["root", ...Array.from({ length: turns - 1 }, () => "extends")].join(" ");
    return relations === wanted ? undefined : `the sub-agent's thread is ${relations}, not ${wanted}`;
  };
}

/** A summary was asked for, and is not trained. */
function summarised({ turns }: Observed): string | undefined {
  const isAsked = turns.some((turn) => turn.role === TurnRole.CONTEXT_ONLY);
  return isAsked ? undefined : "no compaction call was captured";
}

/** And the thread goes on from a new beginning. */
function compacted(observed: Observed): string | undefined {
  const missing = summarised(observed);
  if (missing) return missing;
  const summaries = observed.turns.filter((turn) => turn.role === TurnRole.CONTEXT_ONLY);
  const after = mainThread(observed).filter((turn) => turn.index > summaries[0]!.index);
  const restart = after[0] && relationOf(after[0]);
  if (restart === undefined) return "the main thread ends with the compaction";
  return restart === "root" || restart === "branch"
    ? undefined
    : `the first turn after the compaction is ${restart}`;
}

function refusedOnce({ calls }: Observed): string | undefined {
  return calls.some(({ status }) => status === 400) ? undefined : "no request was refused as too long";
}

function notCompleted({ end }: Observed): string | undefined {
  return end.kind === "completed" ? "the harness says it completed" : undefined;
}

function wasTruncated({ turns }: Observed): string | undefined {
  return turns.some(({ finish }) => finish === FinishReason.LENGTH)
    ? undefined
    : "no turn ended at the length limit";
}

function wasCut({ calls }: Observed): string | undefined {
  return calls.some((call) => call.wasCut) ? undefined : "no connection was cut";
}

/** The one turn after the merged text is rendered whole, in the same conversation; every other follows. */
function branchesOnce(observed: Observed): string | undefined {
  const relations = mainThread(observed).map(relationOf);
  const nBranches = relations.filter((relation) => relation === "branch").length;
  const others = relations.slice(1).filter((relation) => relation !== "branch" && relation !== "extends");
  if (nBranches === 1 && others.length === 0) return undefined;
  return `the main thread is ${relations.join(" ")}, without the one branch behind the merged text`;
}

function adoptedInPart({ trial }: Observed): string | undefined {
  const excluded = trial?.exclusions.get(ExclusionReason.NOT_ADOPTED) ?? 0;
  return excluded > 0 ? undefined : "no tokens are excluded as not adopted";
}
