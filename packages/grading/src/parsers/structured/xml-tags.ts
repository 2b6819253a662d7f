/**
 * Owns finding XML tags in a log that is not only XML: test runners print reports between other output. Reads
 * tags and attributes; text, comments and nesting rules are not looked at, so nothing here can fail.
 */
export interface XmlTagReader {
  open(name: string, attributes: ReadonlyMap<string, string>): void;
  close(name: string): void;
}

/** A tag of a report is short; a longer stretch without an end is no tag. */
const MAX_TAG_CHARACTERS = 65_536;
const TAG = /^<(\/?)([A-Za-z][\w:.-]*)([\s\S]*?)(\/?)>$/;
const ATTRIBUTE = /([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

export class XmlTags {
  readonly #reader: XmlTagReader;
  /** From the `<` of an unfinished tag on. */
  #tag = "";

  constructor(reader: XmlTagReader) {
    this.#reader = reader;
  }

  line(line: string): void {
    if (this.#tag === "" && !line.includes("<")) return;
    const text = this.#tag === "" ? line : `${this.#tag}\n${line}`;
    this.#tag = "";
    let at = text.indexOf("<");
    while (at >= 0) {
      const end = tagEnd(text, at);
      if (end < 0) {
        if (text.length - at <= MAX_TAG_CHARACTERS && mayBeTag(text, at)) this.#tag = text.slice(at);
        return;
      }
      this.#tell(text.slice(at, end + 1));
      at = text.indexOf("<", end + 1);
    }
  }

  #tell(text: string): void {
    const tag = TAG.exec(text);
    if (tag === null) return;
    const [, closing, name, attributes, empty] = tag as unknown as [string, string, string, string, string];
    if (closing === "/") {
      this.#reader.close(name);
      return;
    }
    const values = new Map<string, string>();
    for (const [, key, double, single] of attributes.matchAll(ATTRIBUTE))
      values.set(key!, decode(double ?? single ?? ""));
    this.#reader.open(name, values);
    if (empty === "/") this.#reader.close(name);
  }
}

function mayBeTag(text: string, at: number): boolean {
  return /[A-Za-z/]/.test(text[at + 1] ?? "");
}

/** The `>` that ends the tag at a place, quoted ones passed over; -1 when the text ends first. */
function tagEnd(text: string, start: number): number {
  let quote = 0;
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (quote !== 0) {
      if (code === quote) quote = 0;
    } else if (code === DOUBLE || code === SINGLE) quote = code;
    else if (code === CLOSE) return at;
  }
  return -1;
}

const DOUBLE = '"'.charCodeAt(0);
const SINGLE = "'".charCodeAt(0);
const CLOSE = ">".charCodeAt(0);

function decode(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#(\d+)|#x([0-9a-fA-F]+)|(\w+));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
