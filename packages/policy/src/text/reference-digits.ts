/**
 * Owns a correction to tokenizer.json for the library that reads it: its `Digits` pre-tokenizer splits decimal
 * digits only, where the reference implementation splits every numeric character (½, ², Ⅷ). Written as a `Split`
 * with the same meaning, both agree.
 */
type Json = Readonly<Record<string, unknown>>;

/** The same tokenizer.json with every `Digits` pre-tokenizer as a `Split`. */
export function withReferenceDigits(tokenizerJson: Json): Json {
  return { ...tokenizerJson, pre_tokenizer: corrected(tokenizerJson.pre_tokenizer) };
}

function corrected(preTokenizer: unknown): unknown {
  if (typeof preTokenizer !== "object" || preTokenizer === null) return preTokenizer;
  const { type, pretokenizers, individual_digits: isIndividual } = preTokenizer as Json;
  if (Array.isArray(pretokenizers)) return { ...preTokenizer, pretokenizers: pretokenizers.map(corrected) };
  if (type !== "Digits") return preTokenizer;
  const pattern = { Regex: isIndividual === true ? "\\p{N}" : "\\p{N}+" };
  return { type: "Split", pattern, behavior: "Isolated", invert: false };
}
