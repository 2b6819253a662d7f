/**
 * Owns sockets made on the calling thread by plain system calls, so that one made inside another network namespace
 * belongs to it for good: listeners to hand to a relay, and attempts to reach something.
 * Does not enter namespaces and waits for nothing.
 */
import { closeSync } from "node:fs";
import net from "node:net";
import { type CallError, callError, checked, libraryOf } from "../../libc.js";

const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const SOCK_NONBLOCK = 0o4_000;
const SOCK_CLOEXEC = 0o2_000_000;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SOL_IP = 0;
const IP_TRANSPARENT = 19;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;
const SOCKADDR_IN_BYTES = 16;
const SOCKADDR_IN6_BYTES = 28;
const BACKLOG = 128;

const libc = libraryOf({
  socket: "int socket(int, int, int)",
  setsockopt: "int setsockopt(int, int, int, void*, uint32_t)",
  getsockname: "int getsockname(int, _Out_ uint8_t*, _Inout_ uint32_t*)",
  bind: "int bind(int, void*, uint32_t)",
  listen: "int listen(int, int)",
  connect: "int connect(int, void*, uint32_t)",
  send: "long send(int, void*, size_t, int)",
});

export type Place =
  /** An IPv4 or IPv6 address, never a name. */
  | { readonly host: string; readonly port: number }
  /** A Unix socket without a file: such names belong to a network namespace. */
  | { readonly abstractName: string };

export interface ListenOptions {
  /** Whether connections meant for other addresses may be given to it by a rule. */
  readonly isTransparent?: boolean;
}

/** A listening TCP or Unix socket of the thread's current namespace; port 0 lets the kernel choose. @throws CallError */
export function listenOn(place: Place, options: ListenOptions = {}): number {
  const fd = open(familyOf(place), SOCK_STREAM);
  try {
    // What an earlier listener accepted may still be closing.
    setOption(fd, SOL_SOCKET, SO_REUSEADDR);
    if (options.isTransparent) setOption(fd, SOL_IP, IP_TRANSPARENT);
    if (familyOf(place) === AF_INET6) setOption(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    const address = addressOf(place);
    checked("bind", libc().bind(fd, address, address.byteLength));
    checked("listen", libc().listen(fd, BACKLOG));
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** The port a TCP socket is bound to. */
export function portOf(fd: number): number {
  const address = Buffer.alloc(SOCKADDR_IN6_BYTES);
  checked("getsockname", libc().getsockname(fd, address, [address.byteLength]));
  return address.readUInt16BE(2);
}

/** A connection being made; nothing is sent over it. */
export class Attempt {
  readonly #address: Buffer;
  #fd: number | undefined;
  /** What the kernel last said: connected, still trying, or the name of an errno. */
  state: "connected" | "pending" | (string & {}) = "pending";

  constructor(place: Place) {
    this.#address = addressOf(place);
    try {
      this.#fd = open(familyOf(place), SOCK_STREAM);
    } catch (error) {
      // A host without IPv6 has no such sockets.
      if ((error as CallError).code !== "EAFNOSUPPORT") throw error;
      this.state = "EAFNOSUPPORT";
      return;
    }
    this.look();
  }

  /** Asks the kernel again; a connect that is repeated answers for the one before. */
  look(): void {
    if (this.#fd === undefined || this.state !== "pending") return;
    if (libc().connect(this.#fd, this.#address, this.#address.byteLength) === 0) {
      this.state = "connected";
      return;
    }
    const { code } = callError("connect");
    this.state =
      code === "EINPROGRESS" || code === "EALREADY" ? "pending" : code === "EISCONN" ? "connected" : code;
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Gives the kernel one datagram to send: "sent", or the name of the errno it was refused with. */
export function sendDatagram(place: Place, content: Uint8Array): string {
  const fd = open(familyOf(place), SOCK_DGRAM);
  try {
    const address = addressOf(place);
    if (libc().connect(fd, address, address.byteLength) < 0) return callError("connect").code;
    return libc().send(fd, content, content.byteLength, 0) < 0 ? callError("send").code : "sent";
  } finally {
    closeSync(fd);
  }
}

function open(family: number, type: number): number {
  return checked("socket", libc().socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

function setOption(fd: number, level: number, option: number): void {
  const on = Buffer.alloc(4);
  on.writeInt32LE(1);
  checked("setsockopt", libc().setsockopt(fd, level, option, on, on.byteLength));
}

function familyOf(place: Place): number {
  if ("abstractName" in place) return AF_UNIX;
  return net.isIPv6(place.host) ? AF_INET6 : AF_INET;
}

/** The place as a `sockaddr`. */
function addressOf(place: Place): Buffer {
  if ("abstractName" in place) {
    const name = Buffer.from(`\0${place.abstractName}`);
    return Buffer.concat([Buffer.from([AF_UNIX, 0]), name]);
  }
  const isIpv6 = familyOf(place) === AF_INET6;
  const address = Buffer.alloc(isIpv6 ? SOCKADDR_IN6_BYTES : SOCKADDR_IN_BYTES);
  address.writeUInt16LE(familyOf(place), 0);
  address.writeUInt16BE(place.port, 2);
  if (isIpv6) address.set(ipv6Bytes(place.host), 8);
  else address.set(place.host.split(".").map(Number), 4);
  return address;
}

function ipv6Bytes(host: string): Uint8Array {
  const [head = "", tail] = host.split("::");
  const groups = (text: string) =>
    text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
  const [before, after] = [groups(head), groups(tail ?? "")];
  const all =
    tail === undefined ? before : [...before, ...Array(8 - before.length - after.length).fill(0), ...after];
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}
