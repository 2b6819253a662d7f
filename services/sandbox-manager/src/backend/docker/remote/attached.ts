/**
 * Owns the standard streams of a container as one stream in two directions. The engine puts a header before each piece
 * of output; what the process says on its error stream is kept apart.
 */
import { Duplex, PassThrough } from "node:stream";
import type Docker from "dockerode";

/** Of the error stream: the end of it. */
const KEPT_BYTES = 4096;

export interface Attached {
  readonly streams: Duplex;
  /** The last it said on its error stream. */
  readonly errors: () => string;
}

/** Precondition: the container was not started; what it says first would be missed. */
export async function attach(container: Docker.Container): Promise<Attached> {
  const raw = (await container.attach({
    stream: true,
    stdin: true,
    stdout: true,
    stderr: true,
    hijack: true,
  })) as Duplex;
  const [out, err] = [new PassThrough(), new PassThrough()];
  let errors = "";
  err.on("data", (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-KEPT_BYTES);
  });
  container.modem.demuxStream(raw, out, err);
  const streams = Duplex.from({ readable: out, writable: raw });
  raw.once("end", () => out.end()).once("close", () => out.destroy());
  raw.on("error", (error) => out.destroy(error));
  streams.once("close", () => raw.destroy());
  streams.on("error", () => raw.destroy());
  return { streams, errors: () => errors.trim() };
}
