/** The raw text of a custom tool's call, decoded from its arguments while they come. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CustomInput } from "../src/custom-input.js";

const decode = (...pieces: readonly string[]) => {
  const input = new CustomInput();
  const streamed = pieces.map((piece) => input.push(piece));
  return { streamed: streamed.join(""), whole: streamed.join("") + input.end() };
};

/** A text cut into pieces anywhere, within escapes too. */
const pieces = (text: string) =>
  fc.array(fc.nat(text.length), { maxLength: 8 }).map((cuts) => {
    const at = [0, ...cuts.sort((a, b) => a - b), text.length];
    return at.slice(1).map((end, n) => text.slice(at[n], end));
  });

const anyText = fc.string({ unit: "binary", maxLength: 40 });

describe("[103] input", () => {
  test("however it is cut, it is the text that was wrapped, and all of it comes before the end", () => {
    const cut = anyText.chain((text) => fc.tuple(fc.constant(text), pieces(JSON.stringify({ input: text }))));
    fc.assert(
      fc.property(cut, ([text, parts]) => {
        expect(decode(...parts)).toEqual({ streamed: text, whole: text });
      }),
      { numRuns: 500 },
    );
  });

  test("whatever the policy writes, what was streamed is never taken back, nor half a character shown", () => {
    const noise = fc.string({ unit: fc.constantFrom(...'{}":,\\unput d8Dc0 é\n'), maxLength: 30 });
    const cut = noise.chain((text) => pieces(`{"input":"${text}`));
    fc.assert(
      fc.property(cut, (parts) => {
        const { streamed, whole } = decode(...parts);
        expect(whole.startsWith(streamed)).toBe(true);
        expect(decode(parts.join("")).whole).toBe(whole);
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ['{"input":"\\ud83d\\ude00"}', "😀"],
    ['{"input":"\\d \\uzzzz"}', "\\d \\uzzzz"],
    ['{"input":"a\nb"}', "a\nb"],
    ['{"input":"a","more":1}', "a"],
    ['{"more":1,"input":"a"}', "a"],
    ['{"input":["a"]}', '{"input":["a"]}'],
    ["*** Begin Patch", "*** Begin Patch"],
    ["", ""],
  ])("%j is %j", (text, expected) => {
    expect(decode(text).whole).toBe(expected);
    expect(decode(...text).whole).toBe(expected);
  });

  test("half a pair waits for the other half", () => {
    const input = new CustomInput();
    expect(input.push('{"input":"a\\ud83d')).toBe("a");
    expect(input.push("\\ude00")).toBe("😀");
  });
});
