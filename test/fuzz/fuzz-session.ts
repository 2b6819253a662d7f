/**
 * Owns a session to fuzz: the proxy's own, over a journal in memory and an engine that plays random ids. Keeps
 * what the engine was given, so that a test can compare it with what the records say.
 */
import { MortiseError, RunConfig, type SessionSealed, type Turn } from "@mortise/contracts";
import { createLog, systemClock } from "@mortise/kernel";
import { ChatTemplate, Tokenizer, tokenizerFiles, trainTokenizer } from "@mortise/policy";
import { Renderer, toolFormatOf } from "@mortise/rendering";
import { ScriptedEngine } from "../../services/proxy/src/engine/scripted/scripted-engine.js";
import type { GenerateRequest } from "../../services/proxy/src/engine/types.js";
import { renderTask } from "../../services/proxy/src/rendering/render-task.js";
import type { RunPolicy } from "../../services/proxy/src/run-policy.js";
import type { Journal, JournalContents } from "../../services/proxy/src/session/journal.js";
import { Session } from "../../services/proxy/src/session/session.js";
import { Spool } from "../../services/proxy/src/session/spool.js";
import type { Random } from "./random.js";

const MAX_POSITIONS = 60_000;
const MAX_REPLY_TOKENS = 24;
const SPECIAL_TOKENS = [
  ...["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>"],
];
/** What replies are put together from, besides ids at random. */
const PIECES = [
  ...[
    "ok",
    " done",
    "\n",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    '{"name": "',
    '", "arguments": {',
  ],
  ...["}}", "Bash", "bash", "edit", '"command": "ls"', "{", "}", "ß\u{1f469}", "<|im_start|>"],
];

/** Everything of the policy that does not depend on a session. */
export class FuzzPolicy {
  readonly tokenizer: Tokenizer;
  readonly endId: number;
  private readonly common: Omit<RunPolicy, "engine">;

  constructor(chatTemplate: string) {
    const trained = trainTokenizer(
      ["user assistant system tool name arguments command file_path text type"],
      {
        maxMerges: 60,
        specialTokens: SPECIAL_TOKENS,
      },
    );
    const files = tokenizerFiles(trained, {
      eosToken: "<|im_end|>",
      padToken: "<|endoftext|>",
      chatTemplate,
      maxLength: MAX_POSITIONS,
    });
    const tokenizer = new Tokenizer(files);
    const stopIds = new Set([tokenizer.idOf("<|im_end|>")!]);
    const renderer = new Renderer({ chatTemplate: new ChatTemplate(files), tokenizer, eosIds: stopIds });
    const { tokenizerConfigJson } = files;
    this.tokenizer = tokenizer;
    this.endId = tokenizer.idOf("<|im_end|>")!;
    this.common = {
      run: "fuzz",
      config: RunConfig.parse({ run: { id: "fuzz" }, policy: { checkpoint: "none" } }),
      tokenizer,
      renderer,
      rendering: { render: (task) => renderTask(renderer, task) },
      toolFormat: toolFormatOf({ tokenizerConfigJson, tokenizer, renderer, stopIds }),
      stopIds,
      maxPositions: MAX_POSITIONS,
    };
  }

  with(engine: ScriptedEngine): RunPolicy {
    return { ...this.common, engine };
  }

  /** Ids of a reply: text, calls, marks, and ids that spell nothing; mostly ended. */
  reply(random: Random): number[] {
    const ids: number[] = [];
    for (let left = 1 + random.int(8); left > 0; left--)
      if (random.chance(0.8)) ids.push(...this.tokenizer.encode(random.pick(PIECES)));
      else ids.push(random.int(this.tokenizer.vocabSize));
    return [...ids.slice(0, MAX_REPLY_TOKENS), ...(random.chance(0.9) ? [this.endId] : [])];
  }
}

/** A journal that keeps turns as a stream would: in order, and never changed. */
class MemoryJournal {
  readonly turns: { turn: Turn; sequence: number }[] = [];
  seal: SessionSealed | undefined;

  async appendTurn(turn: Turn, lastSequence: number): Promise<number> {
    const last = this.turns.at(-1)?.sequence ?? 0;
    if (last !== lastSequence) throw new Error(`appended behind ${lastSequence}, not ${last}`);
    this.turns.push({ turn, sequence: last + 1 });
    return last + 1;
  }

  async appendSeal(seal: SessionSealed, lastSequence: number): Promise<number> {
    this.seal = seal;
    return lastSequence + 1;
  }

  get contents(): JournalContents {
    return { turns: this.turns, seal: undefined, lastSequence: this.turns.at(-1)?.sequence ?? 0 };
  }
}

export class FuzzSession {
  readonly journal = new MemoryJournal();
  /** Context the engine was given, by the turn's index. */
  readonly contexts = new Map<number, Int32Array>();
  session: Session;
  private readonly policy: RunPolicy;

  constructor(policy: FuzzPolicy, random: Random) {
    const { contexts } = this;
    const engine = new (class extends ScriptedEngine {
      override generate(request: GenerateRequest) {
        contexts.set(request.turnIndex, request.contextIds.slice());
        return super.generate(request);
      }
    })({
      choose: () => ({ ids: policy.reply(random), ...(random.chance(0.02) && { failAfter: random.int(3) }) }),
    });
    void engine.loadWeights({ version: 3, sha256: "none" });
    this.policy = policy.with(engine);
    this.session = this.open();
  }

  /** As after a crash: another replica reads the journal. */
  restart(): void {
    this.session = this.open();
  }

  private open(): Session {
    const log = createLog({ service: "fuzz", level: "silent" });
    const limits = { turns: 0, promptTokens: 0, responseTokens: 0, wallClockMs: 0, turnsWithoutCall: 0 };
    return new Session(
      {
        terms: { run: "fuzz", trial: "t", isEvaluation: false, rngKey: "k", budget: limits },
        policy: this.policy,
        // The session asks nothing else of a journal.
        journal: this.journal as unknown as Journal,
        spool: new Spool({ maxTurns: 64, maxBytes: 1 << 30, clock: systemClock, log }),
        clock: systemClock,
        events: {
          captured: () => {},
          coalesced: () => {},
          failed: (turn, error) => {
            if (error.code !== "MORTISE_PROVIDER_ENGINE" || !/failure after/.test(error.message))
              throw new MortiseError({ code: "MORTISE_CAPTURE_INVALID", message: turn, cause: error });
          },
          overtaken: () => {},
        },
      },
      this.journal.contents,
    );
  }
}
