/**
 * Owns how far the archive reaches in each stream: one small file, replaced whole after the rows it covers are
 * durable. Does not move by itself.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";
import { writeDurably } from "./durable-file.js";

const PositionFile = z.strictObject({
  schema: z.literal(1),
  streams: z.record(
    z.string(),
    z.strictObject({
      /** Sequence of the last archived message; 0 for none. */
      sequence: z.int().min(0),
      /** When the server created the stream, which tells one server's stream from another's. */
      created: z.string(),
    }),
  ),
});

export type Position = z.infer<typeof PositionFile>;
export type StreamPosition = Position["streams"][string];

const FILE = "position.json";

/** The position of an archive directory; empty for a new one. Throws MORTISE_OPERATOR_ARCHIVE when malformed. */
export async function readPosition(directory: string): Promise<Position> {
  const path = join(directory, FILE);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return { schema: 1, streams: {} };
    throw malformed(path, cause);
  }
  try {
    return PositionFile.parse(JSON.parse(text));
  } catch (cause) {
    throw malformed(path, cause);
  }
}

export async function writePosition(directory: string, position: Position): Promise<void> {
  await writeDurably(join(directory, FILE), new TextEncoder().encode(`${JSON.stringify(position)}\n`));
}

function malformed(path: string, cause: unknown): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_ARCHIVE",
    message: `${path} cannot be read.`,
    detail: { path },
    cause,
  });
}
