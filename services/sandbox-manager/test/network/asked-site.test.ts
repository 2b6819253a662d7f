/** Which site a client asks for, however its first bytes arrive; whoever hides it names none. */
import { once } from "node:events";
import net from "node:net";
import tls from "node:tls";
import { describe, expect, test } from "vitest";
import { askedSite } from "../../src/backend/network/asked-site.js";

/** The real hello of this Node's TLS. */
async function helloFor(servername: string | undefined): Promise<Buffer> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  const client = tls.connect({
    host: "127.0.0.1",
    port,
    ...(servername === undefined ? {} : { servername }),
  });
  client.on("error", () => undefined);
  const [socket] = (await once(server, "connection")) as [net.Socket];
  const [hello] = (await once(socket, "data")) as [Buffer];
  client.destroy();
  socket.destroy();
  server.close();
  return hello;
}

/** The same handshake message in records of so many bytes. */
function cut(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.byteLength; at += size) {
    const part = message.subarray(at, at + size);
    records.push(Buffer.from([22, 3, 1, part.byteLength >> 8, part.byteLength & 0xff]), part);
  }
  return Buffer.concat(records);
}

const text = (content: string) => askedSite(Buffer.from(content, "latin1"));

describe("a TLS hello", () => {
  test("names its server, whole or cut over records", async () => {
    const hello = await helloFor("Mirror.Example");
    expect(askedSite(hello)).toEqual({ kind: "site", name: "mirror.example" });
    expect(askedSite(cut(hello, 7))).toEqual({ kind: "site", name: "mirror.example" });
  });

  test("is waited for to its last byte", async () => {
    const hello = cut(await helloFor("mirror.example"), 50);
    for (let n = 0; n < hello.byteLength; n++)
      expect(askedSite(hello.subarray(0, n))).toEqual({ kind: "incomplete" });
  });

  test("without a name, or with lengths that lie, names none", async () => {
    expect(askedSite(await helloFor(undefined))).toEqual({ kind: "unnamed" });
    const hello = await helloFor("mirror.example");
    const lying = Buffer.from(hello);
    // The length of the session id: everything behind it is read from elsewhere.
    lying[5 + 4 + 34] = 0xff;
    expect(askedSite(lying)).toEqual({ kind: "unnamed" });
    expect(askedSite(Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]))).toEqual({ kind: "unnamed" });
    expect(askedSite(Buffer.from([22, 9, 9, 0, 4, 1, 0, 0, 0]))).toEqual({ kind: "unnamed" });
  });
});

describe("an HTTP request", () => {
  test("names the host of its header, with or without a port", () => {
    expect(text("GET / HTTP/1.1\r\nA: b\r\nHost: Mirror.Example:8080\r\n\r\n")).toEqual({
      kind: "site",
      name: "mirror.example",
    });
    expect(text("GET http://mirror.example/x HTTP/1.1\r\nhost: mirror.example\r\n\r\n")).toEqual({
      kind: "site",
      name: "mirror.example",
    });
  });

  test("is waited for to the end of its headers", () => {
    const request = "GET / HTTP/1.1\r\nHost: mirror.example\r\n\r\n";
    for (let n = 0; n < request.length; n++)
      expect(text(request.slice(0, n))).toEqual({ kind: "incomplete" });
  });

  test.each([
    ["no host", "GET / HTTP/1.1\r\n\r\n"],
    ["two hosts", "GET / HTTP/1.1\r\nHost: mirror.example\r\nHost: other.example\r\n\r\n"],
    ["another host in its target", "GET http://other.example/ HTTP/1.1\r\nHost: mirror.example\r\n\r\n"],
    ["a tunnel elsewhere", "CONNECT other.example:443 HTTP/1.1\r\nHost: mirror.example\r\n\r\n"],
    ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ])("with %s names none", (_, request) => {
    expect(text(request)).toEqual({ kind: "unnamed" });
  });
});

test("anything else is another protocol", () => {
  for (const content of ["SSH-2.0-x\r\n", "\r\nGET / HTTP/1.1\r\n", "\0\0\0\x08", "get / http/1.1\r\n"])
    expect(text(content)).toEqual({ kind: "other-protocol" });
});
