/**
 * Owns the byte alphabet of byte-level BPE: one printable character per byte. Printable bytes of Latin-1 stand
 * for themselves, the others are moved to code points from 256 on, in order, so that a vocabulary is plain text.
 */

function isPrintable(byte: number): boolean {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

function buildAlphabet(): string[] {
  const characters: string[] = [];
  let moved = 256;
  for (let byte = 0; byte < 256; byte++) {
    characters.push(String.fromCodePoint(isPrintable(byte) ? byte : moved++));
  }
  return characters;
}

/** Character of each byte, index 0..255. */
export const BYTE_CHARACTERS: readonly string[] = buildAlphabet();

const BYTE_OF = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));

/** UTF-8 bytes of a text, each as its character. */
export function toByteCharacters(text: string): string[] {
  return Array.from(new TextEncoder().encode(text), (byte) => BYTE_CHARACTERS[byte]!);
}

/** The bytes a vocabulary entry stands for, or undefined when it has a character outside the alphabet. */
export function bytesOfEntry(entry: string): Uint8Array | undefined {
  const bytes: number[] = [];
  for (const character of entry) {
    const byte = BYTE_OF.get(character);
    if (byte === undefined) return undefined;
    bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}
