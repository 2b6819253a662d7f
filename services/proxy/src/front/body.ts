/** Owns reading a request body within a limit, and its JSON. Slow senders are ended by the server's timeouts. */
import type { IncomingMessage } from "node:http";
import { MortiseError } from "@mortise/contracts";

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
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch (cause) {
    throw new MortiseError({ code: "MORTISE_PROVIDER_BAD_REQUEST", message: "The body is not JSON.", cause });
  }
}
