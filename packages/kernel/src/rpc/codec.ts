/**
 * Owns the bridge between protobuf-es descriptors and grpc-js: method paths, stream flags, byte codecs.
 */
import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import type { MethodDefinition } from "@grpc/grpc-js";

/** Turns a message or its initialiser into bytes. A message that is complete already is not copied. */
export function encode(schema: DescMessage, value: unknown): Buffer {
  const isMessage = typeof value === "object" && value !== null && "$typeName" in value;
  const message = isMessage ? (value as Message) : create(schema, value as never);
  const bytes = toBinary(schema, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function decode(schema: DescMessage, bytes: Uint8Array): Message {
  // Without this the bytes fields would be Buffers, whose `slice` does not copy.
  return fromBinary(schema, new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length));
}

/** The grpc-js definition of a method. */
export function methodDefinition(method: DescMethod): MethodDefinition<unknown, unknown> {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
    responseStream: method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
    requestSerialize: (value) => encode(method.input, value),
    requestDeserialize: (bytes) => decode(method.input, bytes),
    responseSerialize: (value) => encode(method.output, value),
    responseDeserialize: (bytes) => decode(method.output, bytes),
  };
}
