/**
 * Owns turning a trial's log into the ids a learned verifier is asked under, within its context, and the ids of both
 * answers. Does not compute.
 *
 * P1  Nothing in a log is read as a mark of the chat template: a trial cannot end its own message and answer for the
 *     verifier.
 */
import { MortiseError } from "@mortise/contracts";
import type { CheckpointText } from "@mortise/policy";
import { ANSWERS, judgePrompt, type TrialLog } from "./judge-template.js";

export interface EncodedPrompt {
  readonly ids: Int32Array;
  /** Entries left out at the beginning of the log. */
  readonly leftOut: number;
}

export class PromptEncoder {
  readonly yes: Int32Array;
  readonly no: Int32Array;
  private readonly text: CheckpointText;
  private readonly room: number;
  private readonly specials: readonly string[];

  /** @param maxTokens prompt and answer together */
  constructor(text: CheckpointText, maxTokens: number) {
    const { tokenizer } = text;
    this.text = text;
    this.yes = tokenizer.encode(ANSWERS.yes);
    this.no = tokenizer.encode(ANSWERS.no);
    this.room = maxTokens - Math.max(this.yes.length, this.no.length);
    this.specials = [...tokenizer.specialIds].flatMap((id) => tokenizer.tokenOf(id) ?? []);
    if (this.yes.length > 0 && this.no.length > 0 && !isSame(this.yes, this.no)) return;
    throw new MortiseError({
      code: "MORTISE_POLICY_CHECKPOINT",
      message: `The tokenizer does not tell ${ANSWERS.yes} from ${ANSWERS.no}.`,
      fix: "Use a checkpoint whose tokenizer has ids for both.",
      detail: { field: "--checkpoint" },
    });
  }

  /**
   * The earliest entries are left out until the rest has room: how a trial ended says the most of it. Undefined when not
   * even its last entry has.
   */
  encode(log: TrialLog): EncodedPrompt | undefined {
    const whole = this.tried(log, 0);
    if (whole) return whole;
    let [tooFew, enough] = [0, Math.max(log.entries.length - 1, 0)];
    let found = this.tried(log, enough);
    while (found && enough - tooFew > 1) {
      const middle = Math.floor((tooFew + enough) / 2);
      const prompt = this.tried(log, middle);
      if (prompt) [found, enough] = [prompt, middle];
      else tooFew = middle;
    }
    return found;
  }

  private tried(log: TrialLog, leftOut: number): EncodedPrompt | undefined {
    const { tokenizer, chatTemplate } = this.text;
    const content = this.withoutMarks(judgePrompt(log, leftOut));
    const rendered = chatTemplate.renderMessages([{ role: "user", content }], undefined, {
      addGenerationPrompt: true,
      // Templates of reasoning models: the answer is the first thing said.
      variables: { enable_thinking: false },
    });
    const ids = tokenizer.encodeWithin(rendered, this.room);
    return "estimate" in ids ? undefined : { ids, leftOut };
  }

  /** P1: a space behind the first character of whatever spells a special token. */
  private withoutMarks(text: string): string {
    return this.specials.reduce(
      (rest, special) => rest.replaceAll(special, `${special.slice(0, 1)} ${special.slice(1)}`),
      text,
    );
  }
}

function isSame(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((id, at) => id === b[at]);
}
