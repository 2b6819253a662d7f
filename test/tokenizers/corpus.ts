/**
 * Owns the texts on which two tokenizer implementations are compared: this repository's own files, and what such
 * implementations are known to differ in. Deterministic.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const TEXT_FILES = /\.(ts|mjs|js|md|json|proto|yaml|yml|toml|py|sh)$|Dockerfile$/;
/** Longer files are compared by their beginning: the interesting pieces repeat. */
const MAX_CHARACTERS = 20_000;
const MAX_FILES = 400;

export interface Text {
  readonly kind: string;
  readonly text: string;
}

export function corpus(specialTokens: readonly string[]): Text[] {
  return [...repositoryFiles(), ...unicodeTexts(), ...whiteSpace(), ...longRuns(), ...marked(specialTokens)];
}

function repositoryFiles(): Text[] {
  const listed = execFileSync("git", ["ls-files"], { cwd: REPOSITORY, encoding: "utf8" }).split("\n");
  const files = listed.filter((file) => TEXT_FILES.test(file) && !file.includes("pnpm-lock"));
  const step = Math.max(1, Math.floor(files.length / MAX_FILES));
  return files
    .filter((_, at) => at % step === 0)
    .map((file) => ({
      kind: "repository",
      text: readFileSync(join(REPOSITORY, file), "utf8").slice(0, MAX_CHARACTERS),
    }));
}

function unicodeTexts(): Text[] {
  const texts = [
    "Größe, naïve café, cafe\u0301 (decomposed), Å Å ﬁ ﬀ ½ ² Ⅷ",
    "漢字かな交じり文 カタカナ ｶﾀｶﾅ 한국어 조선말 ㅎㅏㄴ 한",
    "العربية تُكتب من اليمين עברית नमस्ते दुनिया ภาษาไทย မြန်မာ",
    "🙂👩‍👩‍👧‍👦👍🏽🇩🇪🏴󠁧󠁢󠁥󠁮󠁧󠁿 ⚙️ ✔︎ ❤️‍🔥",
    "a\u200bb\u200dc\ufeffd\u00adf\u2028g\u2029h\u0085i",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 🅰️ ₿ ∑∫√ ≠≤≥ → ⇒ ┌─┐│└┘ ░▒▓",
    "don't DON'T I'LL we've ſ's ‘quoted’ “double” «guillemets»",
    "x\u0300\u0301\u0302y ́ leading mark, ೞ್ಕ, Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L",
    "\ud7ff \ue000 \uf8ff \uffff \u{10ffff} \u{1f9ff}",
    "1234567890 1,234.56 0x1F 1e-9 ١٢٣ १२३ 一二三 ½¼",
  ];
  return texts.map((text) => ({ kind: "unicode", text }));
}

function whiteSpace(): Text[] {
  const pieces = [" ", "  ", "\t", "\n", "\r\n", "\r", "\n\n\n", " \n ", "\u00a0", "\u3000", "\v", "\f"];
  const texts: string[] = [...pieces];
  for (const one of pieces) for (const other of pieces) texts.push(`a${one}${other}b${other}${one}`);
  texts.push("if x:\n    y\n\n\n        z\n\t\tw  \n", "  leading", "trailing  ", "");
  return texts.map((text) => ({ kind: "white space", text }));
}

function longRuns(): Text[] {
  const units = ["a", "A", " ", "\n", "-", "=", "1", "é", "漢", "🙂", "ab", " a", "\t\t", "()", "<|", "'s"];
  return units.map((unit) => ({ kind: "long runs", text: unit.repeat(1500) }));
}

function marked(specialTokens: readonly string[]): Text[] {
  const texts = specialTokens.flatMap((token) => [
    token,
    `${token}${token}`,
    `a${token}b`,
    ` ${token} `,
    `\n${token}\n\n`,
    `${token.slice(0, -1)} ${token.slice(1)}`,
    `é${token}🙂`,
  ]);
  return texts.map((text) => ({ kind: "special tokens", text }));
}
