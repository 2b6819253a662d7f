/** Owns reading a request body within a limit, and its JSON. Slow senders are ended by the server's timeouts. */
import type { IncomingMessage } from "node:http";
import { MortiseError } from "@mortise/contracts";

/** Schemas of tools nest about ten levels; what walks a body recursively has this much stack for certain. */
const MAX_DEPTH = 200;

/** @throws MortiseError MORTISE_PROVIDER_TOO_LARGE or MORTISE_PROVIDER_BAD_REQUEST */
export async function readJsonBody(request: IncomingMessage, limitBytes: number): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limitBytes)
      throw new MortiseError({
        code: "MORTISE_PROVIDER_TOO_LARGE",
        message: `The limit is ${limitBytes} bytes.`,
      });
    chunks.push(chunk);
  }
  const body = parse(Buffer.concat(chunks).toString("utf8"));
  if (isDeeperThan(MAX_DEPTH, body))
    throw new MortiseError({
      code: "MORTISE_PROVIDER_BAD_REQUEST",
      message: `The body is nested deeper than ${MAX_DEPTH} levels.`,
    });
  return body;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new MortiseError({ code: "MORTISE_PROVIDER_BAD_REQUEST", message: "The body is not JSON.", cause });
  }
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(levels - 1, inner));
}
