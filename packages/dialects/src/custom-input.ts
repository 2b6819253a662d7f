/**
 * Owns the raw text of a custom tool's call, which the policy writes as the JSON argument `input`: decoded as
 * it streams, as far as it is certain. Text that is no such object is the raw text itself: a policy that
 * leaves the wrapping out means what it writes.
 */
import { CUSTOM_ARGUMENT } from "./custom-tool.js";
import { isObject } from "./fields.js";

const OPENING = new RegExp(`^\\s*\\{\\s*"${CUSTOM_ARGUMENT}"\\s*:\\s*"`);
/** Longer than any spelling of the opening; behind it, only the end tells what the text is. */
const OPENING_CHARACTERS = 256;

const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

export class CustomInput {
  private readonly texts: string[] = [];
  private phase: "opening" | "string" | "closed" | "opaque" = "opening";
  /** Before the string: all text so far. Within it: an escape, or half a character, that is not whole yet. */
  private pending = "";

  /** Takes argument text; gives the raw text that is certain by now and was not before. */
  push(text: string): string {
    this.texts.push(text);
    if (this.phase === "closed" || this.phase === "opaque") return "";
    this.pending += text;
    if (this.phase === "opening" && !this.opens()) return "";
    return this.decode();
  }

  /** The raw text that only the end makes certain. */
  end(): string {
    if (this.phase === "string" || this.phase === "closed") return this.pending;
    return wholeInput(this.texts.join(""));
  }

  private opens(): boolean {
    const opening = OPENING.exec(this.pending);
    if (opening) {
      this.phase = "string";
      this.pending = this.pending.slice(opening[0].length);
    } else if (this.pending.length > OPENING_CHARACTERS) this.phase = "opaque";
    return opening !== null;
  }

  private decode(): string {
    const text = this.pending;
    let raw = "";
    let at = 0;
    while (at < text.length && this.phase === "string") {
      if (text[at] === '"') {
        this.phase = "closed";
        at = text.length;
        break;
      }
      const length = text[at] === "\\" ? escapeLength(text, at) : 1;
      if (at + length > text.length) break;
      raw += length === 1 ? text[at] : unescaped(text.slice(at, at + length));
      at += length;
    }
    this.pending = text.slice(at);
    return this.withholdHalf(raw);
  }

  /** Half a surrogate pair is no text: it waits for the other half, as an escape that is not whole. */
  private withholdHalf(raw: string): string {
    const last = raw.charCodeAt(raw.length - 1);
    const isHalf = this.phase === "string" && last >= 0xd800 && last < 0xdc00;
    if (!isHalf) return raw;
    this.pending = raw.slice(-1) + this.pending;
    return raw.slice(0, -1);
  }
}

function escapeLength(text: string, at: number): number {
  return text[at + 1] === "u" ? 6 : 2;
}

/** What JSON does not know as an escape stands for itself, as the policy wrote it. */
function unescaped(written: string): string {
  const name = written[1]!;
  if (name !== "u") return ESCAPES[name] ?? ('"\\/'.includes(name) ? name : written);
  const code = written.slice(2);
  return /^[0-9a-fA-F]{4}$/.test(code) ? String.fromCharCode(Number.parseInt(code, 16)) : written;
}

function wholeInput(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value) && typeof value[CUSTOM_ARGUMENT] === "string") return value[CUSTOM_ARGUMENT];
  } catch {
    return text;
  }
  return text;
}
