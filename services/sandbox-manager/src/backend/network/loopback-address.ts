/**
 * Owns giving the loopback interface of the thread's current namespace further IPv4 addresses, so that what is sent to
 * them stays inside. Speaks netlink itself: one message and its answer. Does not know which addresses, or why.
 */
import { closeSync } from "node:fs";
import { callError, checked, libraryOf } from "../../libc.js";

const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0o2_000_000;
const RTM_NEWADDR = 20;
const RTM_DELADDR = 21;
const NLM_F_REQUEST_ACK = 0x1 | 0x4;
const NLM_F_CREATE_EXCL = 0x400 | 0x200;
const AF_INET = 2;
const WHOLE_ADDRESS_BITS = 32;
const RT_SCOPE_HOST = 254;
/** The same in every namespace. */
const LOOPBACK_INDEX = 1;
const IFA_ADDRESS = 1;
const IFA_LOCAL = 2;
const MESSAGE_BYTES = 40;
/** Where the errno lies in an answer, negated. */
const ANSWER_ERRNO_OFFSET = 16;

const libc = libraryOf({
  socket: "int socket(int, int, int)",
  send: "long send(int, void*, size_t, int)",
  recv: "long recv(int, _Out_ uint8_t*, size_t, int)",
});

/** Throws CallError; an address it has already (EEXIST) is one too. */
export function addLoopbackAddress(address: string): void {
  request(RTM_NEWADDR, NLM_F_REQUEST_ACK | NLM_F_CREATE_EXCL, address);
}

export function removeLoopbackAddress(address: string): void {
  request(RTM_DELADDR, NLM_F_REQUEST_ACK, address);
}

function request(type: number, flags: number, address: string): void {
  const fd = checked("socket", libc().socket(AF_NETLINK, SOCK_RAW_CLOEXEC, 0));
  try {
    const message = messageOf(type, flags, address);
    checked("send", libc().send(fd, message, message.byteLength, 0));
    const answer = Buffer.alloc(4096);
    checked("recv", libc().recv(fd, answer, answer.byteLength, 0));
    const errno = -answer.readInt32LE(ANSWER_ERRNO_OFFSET);
    if (errno !== 0) throw callError(`netlink request ${type} for ${address}`, errno);
  } finally {
    closeSync(fd);
  }
}

/** `nlmsghdr`, `ifaddrmsg` and the attributes IFA_LOCAL and IFA_ADDRESS. */
function messageOf(type: number, flags: number, address: string): Buffer {
  const message = Buffer.alloc(MESSAGE_BYTES);
  message.writeUInt32LE(MESSAGE_BYTES, 0);
  message.writeUInt16LE(type, 4);
  message.writeUInt16LE(flags, 6);
  message.set([AF_INET, WHOLE_ADDRESS_BITS, 0, RT_SCOPE_HOST], 16);
  message.writeUInt32LE(LOOPBACK_INDEX, 20);
  for (const [offset, attribute] of [
    [24, IFA_LOCAL],
    [32, IFA_ADDRESS],
  ] as const) {
    message.writeUInt16LE(8, offset);
    message.writeUInt16LE(attribute, offset + 2);
    message.set(address.split(".").map(Number), offset + 4);
  }
  return message;
}
