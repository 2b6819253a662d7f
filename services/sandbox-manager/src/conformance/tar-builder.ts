/** Writes tar archives byte by byte, including those no honest program writes. */
import { createHash } from "node:crypto";

export interface Member {
  readonly name: string | Buffer;
  readonly type?: string;
  readonly content?: Uint8Array | string;
  readonly target?: string;
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly mtime?: number;
  readonly major?: number;
  readonly minor?: number;
  /** Records of an extended header in front of the member. */
  readonly pax?: readonly (readonly [string, string | Uint8Array])[];
  /** What the header states instead of the content's length. */
  readonly size?: number;
  /** Written into the raw block before the checksum. */
  readonly patch?: (block: Buffer) => void;
}

export const file = (name: string, content = "", more: Partial<Member> = {}): Member => ({
  name,
  content,
  ...more,
});
export const directory = (name: string, more: Partial<Member> = {}): Member => ({
  name: `${name}/`,
  type: "5",
  mode: 0o755,
  ...more,
});
export const symlink = (name: string, target: string, more: Partial<Member> = {}): Member => ({
  name,
  type: "2",
  target,
  ...more,
});
export const hardlink = (name: string, target: string): Member => ({ name, type: "1", target });

export function tar(members: readonly Member[]): Buffer {
  return Buffer.concat([...members.map(member), Buffer.alloc(1024)]);
}

export function member(one: Member): Buffer {
  const content = Buffer.from(one.content ?? "");
  const before = one.pax === undefined ? [] : [extension("x", paxBytes(one.pax))];
  const block = Buffer.alloc(512);
  Buffer.from(one.name).copy(block, 0, 0, 100);
  octal(block, 100, 8, one.mode ?? 0o644);
  octal(block, 108, 8, one.uid ?? 0);
  octal(block, 116, 8, one.gid ?? 0);
  octal(block, 124, 12, one.size ?? content.byteLength);
  octal(block, 136, 12, one.mtime ?? 1_000_000_000);
  block.write(one.type ?? "0", 156, "latin1");
  block.write(one.target ?? "", 157, 100);
  block.write("ustar\x0000", 257, "latin1");
  octal(block, 329, 8, one.major ?? 0);
  octal(block, 337, 8, one.minor ?? 0);
  one.patch?.(block);
  block.fill(32, 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return Buffer.concat([...before, block, padded(content)]);
}

/** A header that belongs to the next member: x, g, L or K. */
export function extension(type: string, content: Uint8Array): Buffer {
  return member({ name: "extension", type, content });
}

export function paxBytes(records: NonNullable<Member["pax"]>): Buffer {
  return Buffer.concat(
    records.map(([key, value]) => {
      const rest = Buffer.concat([
        Buffer.from(` ${key}=`, "latin1"),
        Buffer.from(value as string),
        Buffer.from("\n"),
      ]);
      let length = rest.byteLength + 1;
      while (String(length).length + rest.byteLength !== length)
        length = String(length).length + rest.byteLength;
      return Buffer.concat([Buffer.from(String(length)), rest]);
    }),
  );
}

export function padded(content: Uint8Array): Buffer {
  return Buffer.concat([content, Buffer.alloc((512 - (content.byteLength % 512)) % 512)]);
}

function octal(block: Buffer, at: number, length: number, value: number): void {
  block.write(value.toString(8).padStart(length - 1, "0"), at, "latin1");
}

export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
