/**
 * Owns reading a JSON call, `{"name": …, "arguments": {…}}`, while it arrives. The argument text is passed on
 * exactly as the policy wrote it, never re-serialised; so is whatever is malformed behind a known name.
 * `parameters` is the same as `arguments`. Other members are skipped.
 */
import type { CallReader } from "./types.js";

const ARGUMENT_KEYS: ReadonlySet<string> = new Set(["arguments", "parameters"]);
const SPACE = /\s/;

type Phase = "before" | "key" | "colon" | "value" | "after-value" | "done" | "lost";

export class JsonCallReader implements CallReader {
  name: string | undefined;
  hasFailed = false;
  private phase: Phase = "before";
  /** Member that is being read. */
  private key = "";
  /** The key or value so far; of an argument value only what is not yet out. */
  private readonly value = new JsonValueScanner();
  private hasArguments = false;
  private given = "";

  get isComplete(): boolean {
    return this.phase === "done" && !this.hasFailed;
  }

  push(text: string): string {
    let at = 0;
    while (at < text.length && !this.hasFailed) {
      if (this.phase === "done") return text.slice(at);
      at = this.step(text, at);
    }
    return "";
  }

  takeArguments(): string {
    const text = this.given;
    this.given = "";
    return text;
  }

  close(): void {
    if (this.name === undefined) this.hasFailed = true;
    else if (!this.hasArguments) this.given += "{}";
  }

  /** Reads from `at`; returns where to go on. */
  private step(text: string, at: number): number {
    const character = text[at]!;
    switch (this.phase) {
      case "before":
        if (character === "{") this.phase = "key";
        else if (!SPACE.test(character)) return this.lose(at);
        return at + 1;
      case "key":
        return this.readKey(text, at);
      case "colon":
        if (character === ":") this.phase = "value";
        else if (!SPACE.test(character)) return this.lose(at);
        return at + 1;
      case "value":
        return this.readValue(text, at);
      case "after-value":
        if (character === ",") this.phase = "key";
        else if (character === "}") this.finish();
        else if (!SPACE.test(character)) return this.lose(at);
        return at + 1;
      case "lost":
        this.given += text.slice(at);
        return text.length;
      case "done":
        return at;
    }
  }

  private readKey(text: string, at: number): number {
    const character = text[at]!;
    if (this.value.isEmpty) {
      if (SPACE.test(character)) return at + 1;
      if (character === "}") {
        this.finish();
        return at + 1;
      }
      if (character !== '"') return this.lose(at);
    }
    const end = this.value.push(text, at);
    if (!this.value.isComplete) return end;
    const literal = this.value.take();
    this.key = readString(literal) ?? literal;
    this.phase = "colon";
    return end;
  }

  private readValue(text: string, at: number): number {
    if (this.value.isEmpty && SPACE.test(text[at]!)) return at + 1;
    const isArgument = ARGUMENT_KEYS.has(this.key);
    if (this.value.isEmpty && (text[at] === "," || text[at] === "}")) return this.lose(at);
    const end = this.value.push(text, at);
    if (isArgument) {
      this.hasArguments = true;
      this.given += this.value.drain();
    }
    if (!this.value.isComplete) return end;
    const value = this.value.take();
    if (this.key === "name") this.readName(value);
    if (!this.hasFailed) this.phase = "after-value";
    return end;
  }

  private readName(value: string): void {
    const name = readString(value);
    if (name) this.name ??= name;
    else this.hasFailed ||= this.name === undefined;
  }

  private finish(): void {
    this.phase = "done";
    if (this.name === undefined) this.hasFailed = true;
  }

  /**
   * No JSON from here on. With a name and no arguments yet, the rest stands for the arguments; with both, the
   * call is complete. Returns where to go on.
   */
  private lose(at: number): number {
    if (this.name === undefined) this.hasFailed = true;
    else if (this.hasArguments) this.phase = "done";
    else {
      this.hasArguments = true;
      this.phase = "lost";
    }
    return at;
  }
}

/** Finds the end of one JSON value by brackets and strings alone, so that malformed insides pass unharmed. */
class JsonValueScanner {
  isComplete = false;
  private text = "";
  private hasBegun = false;
  private depth = 0;
  private isInString = false;
  private isEscaped = false;
  private isLiteral = false;

  get isEmpty(): boolean {
    return !this.hasBegun;
  }

  /** Takes from `at` up to the value's end; returns the index behind what was taken. */
  push(text: string, at: number): number {
    if (!this.hasBegun) {
      this.hasBegun = true;
      this.isLiteral = !/["{[]/.test(text[at]!);
    }
    let end = at;
    while (end < text.length && !this.isComplete) {
      if (this.isLiteral && /[\s,}\]]/.test(text[end]!)) {
        this.isComplete = true;
        break;
      }
      this.see(text[end]!);
      end++;
    }
    this.text += text.slice(at, end);
    return end;
  }

  /** What was taken since the last time; the scanner goes on. */
  drain(): string {
    const text = this.text;
    this.text = "";
    return text;
  }

  /** What was taken since the last time; the scanner begins a new value. */
  take(): string {
    const text = this.drain();
    this.hasBegun = false;
    this.isComplete = false;
    this.isInString = false;
    this.isEscaped = false;
    this.isLiteral = false;
    this.depth = 0;
    return text;
  }

  private see(character: string): void {
    if (this.isInString) {
      if (this.isEscaped) this.isEscaped = false;
      else if (character === "\\") this.isEscaped = true;
      else if (character === '"') {
        this.isInString = false;
        this.isComplete = this.depth === 0;
      }
    } else if (character === '"') this.isInString = true;
    else if (character === "{" || character === "[") this.depth++;
    else if (character === "}" || character === "]") {
      this.depth--;
      this.isComplete = this.depth === 0;
    }
  }
}

/** The string that a JSON literal spells; undefined when it spells none. */
function readString(literal: string): string | undefined {
  try {
    const value: unknown = JSON.parse(literal);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
