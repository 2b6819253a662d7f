/**
 * Owns reading, out of the first bytes a client sends, which site it asks for: the server name of a TLS hello, the
 * host of an HTTP request. Many sites share the addresses of a delivery network; the address alone says little.
 * Does not decrypt and does not look at anything after that.
 */

export type AskedSite =
  /** Lower case, without a port. */
  | { readonly kind: "site"; readonly name: string }
  /** Not enough bytes to tell. */
  | { readonly kind: "incomplete" }
  /** Speaks TLS or HTTP and does not say, or says it in a way that is not understood. */
  | { readonly kind: "unnamed" }
  /** Speaks something else. */
  | { readonly kind: "other-protocol" };

const UNNAMED: AskedSite = { kind: "unnamed" };
const INCOMPLETE: AskedSite = { kind: "incomplete" };
const TLS_HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
/** A hello with every extension there is has a few kilobytes; so have the headers of a request. */
export const MAX_FIRST_BYTES = 64 * 1024;

export function askedSite(bytes: Buffer): AskedSite {
  if (bytes.byteLength === 0) return INCOMPLETE;
  if (bytes[0] === TLS_HANDSHAKE) return ofHello(bytes);
  return ofRequest(bytes);
}

function ofHello(bytes: Buffer): AskedSite {
  const handshake = handshakeOf(bytes);
  if (handshake === undefined) return UNNAMED;
  if (handshake.byteLength < 4) return INCOMPLETE;
  if (handshake[0] !== CLIENT_HELLO) return UNNAMED;
  const length = handshake.readUIntBE(1, 3);
  if (handshake.byteLength < 4 + length) return INCOMPLETE;
  try {
    const name = serverName(handshake.subarray(4, 4 + length));
    return name === undefined ? UNNAMED : { kind: "site", name };
  } catch {
    // A length that points outside.
    return UNNAMED;
  }
}

/** The handshake message, which may be cut over several records; undefined when they are no handshake records. */
function handshakeOf(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; at + 5 <= bytes.byteLength; ) {
    if (bytes[at] !== TLS_HANDSHAKE || bytes[at + 1] !== 3)
      return parts.length === 0 ? undefined : Buffer.concat(parts);
    const length = bytes.readUInt16BE(at + 3);
    parts.push(bytes.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
  return Buffer.concat(parts);
}

/** RFC 8446 §4.1.2 and RFC 6066 §3. Throws RangeError where a length does not fit. */
function serverName(hello: Buffer): string | undefined {
  let at = 2 + 32;
  at += 1 + hello.readUInt8(at);
  at += 2 + hello.readUInt16BE(at);
  at += 1 + hello.readUInt8(at);
  if (at >= hello.byteLength) return undefined;
  const end = at + 2 + hello.readUInt16BE(at);
  for (at += 2; at < end; ) {
    const [type, length] = [hello.readUInt16BE(at), hello.readUInt16BE(at + 2)];
    if (type === SERVER_NAME) {
      // A list with one entry: its length, kind 0, the name's length, the name.
      const nameLength = hello.readUInt16BE(at + 7);
      return hello.toString("latin1", at + 9, at + 9 + nameLength).toLowerCase();
    }
    at += 4 + length;
  }
  return undefined;
}

function ofRequest(bytes: Buffer): AskedSite {
  const text = bytes.toString("latin1");
  const line = text.slice(0, text.indexOf("\n") + 1);
  if (line === "") return /^[A-Z]{1,20}( .*)?$/s.test(text) ? INCOMPLETE : { kind: "other-protocol" };
  const [, target, version] = /^[A-Z]+ (\S+) HTTP\/([0-9.]+)\r?\n$/.exec(line) ?? [];
  if (target === undefined) return { kind: "other-protocol" };
  // The preface of HTTP/2 names no site, and what follows names many.
  if (version !== "1.1" && version !== "1.0") return UNNAMED;
  const end = /\r?\n\r?\n/.exec(text);
  if (end === null) return INCOMPLETE;
  const hosts = [...text.slice(0, end.index).matchAll(/^host:[ \t]*([^\r\n]*?)[ \t]*\r?$/gim)];
  if (hosts.length !== 1) return UNNAMED;
  const named = withoutPort(hosts[0]![1]!);
  // Servers go by a target that is a whole URL, or that is an authority, before they go by the header.
  const authority =
    /^[a-z]+:\/\/([^/?#]*)/i.exec(target)?.[1] ?? (target.startsWith("/") ? undefined : target);
  if (authority !== undefined && withoutPort(authority) !== named) return UNNAMED;
  return { kind: "site", name: named };
}

function withoutPort(authority: string): string {
  return authority
    .toLowerCase()
    .replace(/:[0-9]*$/, "")
    .replace(/\.$/, "");
}
