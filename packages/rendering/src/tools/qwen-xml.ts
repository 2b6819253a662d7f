/**
 * Owns the XML call syntax of Qwen3-Coder and Qwen3.5:
 *
 *     <tool_call>
 *     <function=NAME>
 *     <parameter=KEY>
 *     VALUE
 *     </parameter>
 *     </function>
 *     </tool_call>
 *
 * The arguments become JSON text piece by piece. A value is what stands between its tags without one line break
 * at each end; a string is passed on while it arrives, any other type when it is complete. What spells no
 * parameter is passed on as it is, so that the harness sees malformed arguments rather than missing ones.
 */
import type { ToolSchema } from "@mortise/capture";
import { argumentJson, argumentTypes } from "./argument-types.js";
import { overlap } from "./lexer.js";
import { CALL_CLOSE, CALL_OPEN, type CallReader, type ToolFormat } from "./types.js";

const FUNCTION = "<function=";
const PARAMETER = "<parameter=";
const END_OF_FUNCTION = "</function>";
const END_OF_VALUE = "</parameter>";
/** Beyond this a tag is no tag, so that one that is never closed costs nothing. */
const MAX_NAME_LENGTH = 256;
/** The longest text that can still turn out to be null in place of a string. */
const NULL_LENGTH = 4;

export const qwenXml: ToolFormat = {
  name: "qwen-xml",
  open: [CALL_OPEN],
  close: CALL_CLOSE,
  bareStart: undefined,
  reader: (tools) => new XmlCallReader(tools),
};

/** Each phase takes what it can of the buffer and says whether it took anything. */
type Phase = "function" | "body" | "value" | "after";

class XmlCallReader implements CallReader {
  name: string | undefined;
  hasFailed = false;
  isComplete = false;
  private readonly tools: readonly ToolSchema[];
  private phase: Phase = "function";
  private buffer = "";
  private value: ValueWriter | undefined;
  private isMalformed = false;
  private parameters = 0;
  private given = "";

  constructor(tools: readonly ToolSchema[]) {
    this.tools = tools;
  }

  push(text: string): string {
    this.buffer += text;
    while (!this.hasFailed && this.advance());
    return this.phase === "after" ? this.takeBuffer() : "";
  }

  takeArguments(): string {
    const text = this.given;
    this.given = "";
    return text;
  }

  /** A call whose parameters are all closed is whole without its end tag; an open value stays open. */
  close(): void {
    if (this.name === undefined) this.hasFailed = true;
    else if (this.phase === "value") this.given += this.value!.cutOff(this.takeBuffer());
    else if (this.phase === "body") {
      this.passOn(this.takeBuffer());
      this.finish();
    }
  }

  private takeBuffer(): string {
    const text = this.buffer;
    this.buffer = "";
    return text;
  }

  private advance(): boolean {
    switch (this.phase) {
      case "function":
        return this.readFunction();
      case "body":
        return this.readBody();
      case "value":
        return this.readValue();
      case "after":
        return false;
    }
  }

  private readFunction(): boolean {
    this.buffer = this.buffer.trimStart();
    const name = this.readTag(FUNCTION);
    if (name === undefined) return false;
    if (name === "") this.hasFailed = true;
    else {
      this.name = name;
      this.phase = "body";
    }
    return true;
  }

  private readBody(): boolean {
    if (!this.isMalformed) this.buffer = this.buffer.trimStart();
    if (this.buffer === "") return false;
    if (this.buffer.startsWith(END_OF_FUNCTION)) {
      this.buffer = this.buffer.slice(END_OF_FUNCTION.length);
      this.finish();
      return false;
    }
    if (END_OF_FUNCTION.startsWith(this.buffer)) return false;
    const key = this.readTag(PARAMETER);
    if (key !== undefined && key !== "") {
      const tool = this.tools.find((one) => one.name === this.name);
      this.value = new ValueWriter(argumentTypes(tool, key));
      this.given += `${this.parameters++ === 0 ? "{" : ","}${JSON.stringify(key)}:`;
      this.phase = "value";
      return true;
    }
    if (key === undefined && (PARAMETER.startsWith(this.buffer) || this.buffer.startsWith(PARAMETER)))
      return false;
    const next = this.buffer.indexOf("<", 1);
    this.passOn(next < 0 ? this.buffer : this.buffer.slice(0, next));
    this.buffer = next < 0 ? "" : this.buffer.slice(next);
    return next >= 0;
  }

  private readValue(): boolean {
    const end = this.buffer.indexOf(END_OF_VALUE);
    if (end >= 0) {
      this.given += this.value!.end(this.buffer.slice(0, end));
      this.buffer = this.buffer.slice(end + END_OF_VALUE.length);
      this.phase = "body";
      return true;
    }
    const certain = this.buffer.length - overlap(this.buffer, END_OF_VALUE);
    this.given += this.value!.push(this.buffer.slice(0, certain));
    this.buffer = this.buffer.slice(certain);
    return false;
  }

  /**
   * The name in a tag at the start of the buffer, which is consumed. "" when it is no such tag; undefined
   * while it may become one.
   */
  private readTag(opening: string): string | undefined {
    if (!this.buffer.startsWith(opening)) return opening.startsWith(this.buffer) ? undefined : "";
    const tag = /^([^\n<>]*)(>?)/.exec(this.buffer.slice(opening.length))!;
    if (tag[1]!.length > MAX_NAME_LENGTH) return "";
    if (tag[2] === "") return tag[0].length + opening.length === this.buffer.length ? undefined : "";
    if (tag[1] !== "") this.buffer = this.buffer.slice(opening.length + tag[0].length);
    return tag[1]!;
  }

  private passOn(text: string): void {
    this.isMalformed ||= text.trim() !== "";
    if (!this.isMalformed) return;
    this.given += text;
  }

  private finish(): void {
    this.isComplete = true;
    this.phase = "after";
    if (!this.isMalformed) this.given += this.parameters === 0 ? "{}" : "}";
  }
}

/** Writes one value as JSON text. */
class ValueWriter {
  private readonly types: ReadonlySet<string>;
  private readonly pieces: string[] = [];
  private length = 0;
  /** Certain to be a string: passed on while it arrives. */
  private isString: boolean;
  private hasOpened = false;
  /** A line break that belongs to the tag when the value ends behind it. */
  private lineBreak = "";
  private isAtStart = true;

  constructor(types: ReadonlySet<string>) {
    this.types = types;
    this.isString = types.size === 0 || (types.size === 1 && types.has("string"));
  }

  push(text: string): string {
    const inner = this.trim(text);
    if (this.isString) return this.write(inner);
    this.pieces.push(inner);
    this.length += inner.length;
    const isNullable = this.types.has("string") && this.types.has("null") && this.types.size === 2;
    if (!isNullable || this.length <= NULL_LENGTH) return "";
    this.isString = true;
    return this.write(this.pieces.splice(0).join(""));
  }

  end(text: string): string {
    const last = this.push(text);
    if (this.isString) return `${last}${this.write("")}"`;
    return argumentJson(this.pieces.join(""), this.types);
  }

  /** The value was never closed: what there is of it, without an end. */
  cutOff(text: string): string {
    const last = this.push(text);
    if (this.isString) return last + this.write(this.lineBreak);
    return this.pieces.join("");
  }

  /** Without the line break behind the opening tag, and with the last one held back. */
  private trim(text: string): string {
    if (text === "") return "";
    let inner = this.isAtStart && text.startsWith("\n") ? text.slice(1) : text;
    this.isAtStart = false;
    inner = this.lineBreak + inner;
    this.lineBreak = inner.endsWith("\n") ? "\n" : "";
    return this.lineBreak === "" ? inner : inner.slice(0, -1);
  }

  private write(text: string): string {
    const opening = this.hasOpened ? "" : '"';
    this.hasOpened = true;
    return opening + JSON.stringify(text).slice(1, -1);
  }
}
