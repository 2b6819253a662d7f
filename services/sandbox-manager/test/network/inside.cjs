/** Runs in a sandbox's network namespace and tries what it is told to; answers with what came back or the error code. */
const net = require("node:net");
const tls = require("node:tls");
const dgram = require("node:dgram");

const held = new Map();
const attempts = {
  get({ host, port, site = "x", target = "/" }) {
    const request = `GET ${target} HTTP/1.1\r\nhost: ${site}\r\nconnection: close\r\n\r\n`;
    return exchange(host, port, request).then((text) => text.split("\r\n\r\n")[1] ?? text);
  },
  /** The hello of a TLS connection, whatever is answered. */
  hello({ host, port, site }) {
    return new Promise((resolve) => {
      const socket = tls.connect({ host, port, ...(site === "" ? {} : { servername: site }) });
      socket.on("error", ({ code }) => resolve(code));
      socket.on("close", () => resolve("closed"));
    });
  },
  /** Bytes as they are. */
  say({ host, port, content }) {
    return exchange(host, port, content);
  },
  /** Says all it has to say before the other side says anything. */
  send({ host, port, bytes }) {
    return exchange(host, port, Buffer.alloc(bytes), true);
  },
  /** Keeps a connection until `ended` asks for its end. */
  hold({ host, port }) {
    return new Promise((resolve) => {
      const socket = net.connect({ host, port }, () => resolve("connected"));
      held.set(`${host}:${port}`, new Promise((end) => socket.resume().once("close", () => end("ended"))));
      socket.on("error", ({ code }) => resolve(code));
    });
  },
  ended({ host, port }) {
    return held.get(`${host}:${port}`);
  },
  udp({ host, port }) {
    return new Promise((resolve) => {
      const socket = dgram.createSocket("udp4");
      socket.on("error", ({ code }) => resolve(code));
      socket.send("x", port, host, (error) => resolve(error?.code ?? "sent"));
    });
  },
};

function exchange(host, port, content, isEnd = false) {
  return new Promise((resolve) => {
    const socket = net.connect({ host, port }, () => (isEnd ? socket.end(content) : socket.write(content)));
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.on("error", ({ code }) => resolve(code));
    socket.on("close", () => resolve(text));
  });
}

process.on("message", async ({ id, kind, ...attempt }) => {
  process.send({ id, answer: await attempts[kind](attempt) });
});
