/** Owns choosing the type of a message from its subject, and reading it. */
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { fromUnknown } from "../errors.js";
import type { SchemaOf } from "./types.js";

/**
 * The bytes fields of the message are plain arrays with memory of their own: a view would keep alive a whole block
 * read from the socket, and a Buffer's `slice` does not copy.
 * Throws MORTISE_TRANSPORT_DECODE with the subject and sequence.
 */
export function decodeAs<D extends DescMessage>(
  schema: SchemaOf<D>,
  from: { readonly subject: string; readonly sequence: number; readonly bytes: Uint8Array },
): MessageShape<D> {
  try {
    return fromBinary(
      typeof schema === "function" ? schema(from.subject) : schema,
      new Uint8Array(from.bytes),
    );
  } catch (cause) {
    throw fromUnknown(cause, "MORTISE_TRANSPORT_DECODE", `${from.subject} at sequence ${from.sequence}`);
  }
}
