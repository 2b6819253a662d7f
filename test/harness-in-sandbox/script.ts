/**
 * Owns the script the policy plays: given calls one after the other, whatever a harness puts around the conversation.
 * How far it is stands in the conversation itself: every reply says which step it is.
 */
import type { ToolUse, ToolVocabulary } from "@mortise/harness";
import { END_OF_TURN, replyText, TOOLS_HEADING } from "../../apps/cli/src/conformance/policy-files.js";

const stepName = (number: number) => `This is step ${number} of the plan.`;

/** Lines of a script file of the scripted engine. */
export function scriptLines(calls: readonly ToolUse[], vocabulary: ToolVocabulary): string[] {
  const message = "That is all.";
  const last = vocabulary.finish ? replyText(message, [vocabulary.finish(message)]) : message;
  const replies = [...calls.map((call, at) => replyText(stepName(at + 1), [call])), last];
  const line = (text: string, when: object) =>
    JSON.stringify({ text: `${text}${END_OF_TURN}`, when, times: "always" });
  // The furthest step that is named comes first; before any, what has tools is the agent.
  const furthest = replies.slice(1).map((text, at) => line(text, { contains: stepName(at + 1) }));
  return [
    JSON.stringify({ format: "mortise.engine-script", schema: 1 }),
    ...furthest.reverse(),
    line(replies[0]!, { contains: TOOLS_HEADING }),
    line("A title", {}),
  ];
}
