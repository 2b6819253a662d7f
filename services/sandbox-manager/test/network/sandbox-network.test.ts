/** What a sandbox's namespace can reach, tried on real namespaces: closed, opened for a list, changed. */
import dgram from "node:dgram";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { SandboxNetwork } from "../../src/backend/network/index.js";
import { withinNetworkNamespace } from "../../src/backend/runc/syscalls.js";
import {
  ALLOWED,
  type Attempted,
  create,
  get,
  hasNft,
  inside,
  isRoot,
  OTHER,
  onEnd,
  RULES,
  serve,
} from "./network-world.js";

describe.skipIf(!isRoot)("a closed network", () => {
  test("reaches nothing, and the proof says so probe by probe", async () => {
    const network = await create({ kind: "none" });
    const proof = await network.prove();
    expect(proof.probes.filter(({ expected, observed }) => expected !== observed)).toEqual([]);
    expect(proof.isClosed).toBe(true);
    expect(proof.probes.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        "interfaces besides lo",
        "model endpoint",
        "tcp 1.1.1.1:443",
        "udp-dns 8.8.8.8:53",
        "tcp 169.254.169.254:80",
        "tcp6 [fd00:ec2::254]:80",
        "tcp6 [2606:4700:4700::1111]:443",
        "host port at 127.0.0.1",
        "abstract socket of the host",
      ]),
    );
  });

  test("with a model endpoint leads there and nowhere else", async () => {
    const port = await serve("127.0.0.1", "model");
    const network = await create({ kind: "model", host: "127.0.0.1", port });
    expect(await get(network, "127.0.0.1", 8080)).toBe("model");
    expect(await get(network, "127.0.0.1", port)).toBe("ECONNREFUSED");
    expect(await get(network, "1.1.1.1", 443)).toBe("ENETUNREACH");
    const proof = await network.prove();
    expect(proof.probes.filter(({ expected, observed }) => expected !== observed)).toEqual([]);
    expect(proof.probes).toContainEqual({
      name: "model endpoint",
      expected: "reachable",
      observed: "reachable",
    });
    expect(proof.probes).toContainEqual({
      name: "proxy directly",
      expected: "unreachable",
      observed: "unreachable",
    });
  });

  test("counts what was refused, and not its own probes", async () => {
    const network = await create({ kind: "none" });
    await network.prove();
    expect(network.nDenied).toBe(0);
    await get(network, "1.1.1.1", 443);
    await get(network, "169.254.169.254", 80);
    await network.close();
    expect(network.nDenied).toBe(2);
  });

  test("after a change the earlier connections are cut and the model endpoint moves", async () => {
    const first = await serve("127.0.0.1", "first");
    const second = await serve("127.0.0.1", "second");
    const network = await create({ kind: "model", host: "127.0.0.1", port: first });
    const endpoint = { host: "127.0.0.1", port: 8080 };
    expect(await inside(network, { kind: "hold", ...endpoint })).toBe("connected");
    await network.set({ kind: "model", host: "127.0.0.1", port: second });
    expect(await inside(network, { kind: "ended", ...endpoint })).toBe("ended");
    expect(await get(network, "127.0.0.1", 8080)).toBe("second");
    await network.set({ kind: "none" });
    expect(await get(network, "127.0.0.1", 8080)).toBe("ECONNREFUSED");
    expect((await network.prove()).isClosed).toBe(true);
  });
});

describe.skipIf(!hasNft)("an allow-list", () => {
  const allow = (allowedHosts: readonly string[], port = 9) =>
    ({ kind: "allow-list", host: "127.0.0.1", port, allowedHosts }) as const;

  test("opens any port of its hosts and nothing else", async () => {
    const model = await serve("127.0.0.1", "model");
    const web = await serve(ALLOWED, "web");
    const api = await serve(ALLOWED, "api");
    await serve(OTHER, "other", web);
    const network = await create(allow([ALLOWED], model));
    expect(await get(network, ALLOWED, web)).toBe("web");
    expect(await get(network, ALLOWED, api)).toBe("api");
    expect(await get(network, OTHER, web)).toBe("ECONNREFUSED");
    expect(await get(network, "1.1.1.1", 443)).toBe("ENETUNREACH");
    expect(await get(network, "127.0.0.1", 8080)).toBe("model");
    expect(await get(network, "127.0.0.1", model)).toBe("ECONNREFUSED");
    const proof = await network.prove();
    expect(proof.probes.filter(({ expected, observed }) => expected !== observed)).toEqual([]);
    expect(proof.probes).toContainEqual({
      name: `allowed ${ALLOWED}`,
      expected: "reachable",
      observed: "reachable",
    });
  });

  test("takes no UDP anywhere", async () => {
    const heard: string[] = [];
    const host = dgram.createSocket("udp4").on("message", (content) => heard.push(content.toString()));
    await new Promise<void>((resolve) => host.bind(0, ALLOWED, resolve));
    onEnd.push(() => host.close());
    const network = await create(allow([ALLOWED]));
    await inside(network, { kind: "udp", host: ALLOWED, port: host.address().port });
    expect(await inside(network, { kind: "udp", host: "8.8.8.8", port: 53 })).toBe("ENETUNREACH");
    await delay(50);
    expect(heard).toEqual([]);
  });

  test("gives names their addresses without a resolver inside", async () => {
    const port = await serve(ALLOWED, "mirror");
    const network = await create(allow(["Mirror.Example."]));
    expect(network.knownHosts).toEqual([{ name: "mirror.example", addresses: [ALLOWED] }]);
    expect(await inside(network, { kind: "get", host: ALLOWED, port, site: "mirror.example" })).toBe(
      "mirror",
    );
  });

  test("allows an address for the names it was given for, and no other site there", async () => {
    const heard: Buffer[] = [];
    const server = net.createServer((socket) => {
      socket.on("data", (chunk) => heard.push(chunk)).on("error", () => undefined);
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\n\r\nanswered"));
    });
    await new Promise<void>((resolve) => server.listen(0, ALLOWED, resolve));
    onEnd.push(() => server.close());
    const { port } = server.address() as net.AddressInfo;
    const network = await create(allow(["mirror.example"]));
    const place = { host: ALLOWED, port };
    const isHeard = async (attempted: Omit<Attempted, "host" | "port">) => {
      heard.length = 0;
      await inside(network, { ...attempted, ...place });
      return heard.length > 0;
    };
    expect(await isHeard({ kind: "hello", site: "mirror.example" })).toBe(true);
    expect(await isHeard({ kind: "hello", site: "other.example" })).toBe(false);
    expect(await isHeard({ kind: "hello", site: "" })).toBe(false);
    expect(await isHeard({ kind: "get", site: `mirror.example:${port}` })).toBe(true);
    expect(await isHeard({ kind: "get", site: "other.example" })).toBe(false);
    expect(await isHeard({ kind: "get", site: "mirror.example", target: "http://other.example/" })).toBe(
      false,
    );
    expect(await isHeard({ kind: "say", content: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" })).toBe(false);
    expect(await isHeard({ kind: "say", content: "SSH-2.0-client\r\n" })).toBe(true);
    expect(network.nDenied).toBe(5);
  });

  test("is refused with the reason where nft is not installed; everything else works", async () => {
    const before = process.env.PATH;
    process.env.PATH = "/nonexistent";
    onEnd.push(() => {
      process.env.PATH = before;
    });
    await expect(create(allow([ALLOWED]))).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_NETWORK",
      message: expect.stringContaining("nft"),
    });
    const network = await create({ kind: "model", host: "127.0.0.1", port: 9 });
    const change = network.set(allow([ALLOWED]));
    await expect(change).rejects.toMatchObject({ code: "MORTISE_SANDBOX_NETWORK" });
    process.env.PATH = before;
    expect((await network.prove()).isClosed).toBe(true);
    expect(await get(network, "127.0.0.1", 8080)).toBe("ECONNREFUSED");
    expect(await get(network, ALLOWED, 80)).toBe("ECONNREFUSED");
  });

  test("leaves no descriptor and no namespace", async () => {
    const once = async () => {
      const network = await SandboxNetwork.create(allow([ALLOWED, "mirror.example"]), RULES);
      await network.prove();
      await network.set({ kind: "model", host: "127.0.0.1", port: 9 });
      await network.set(allow([ALLOWED]));
      await network.close();
    };
    const descriptors = () => readdirSync("/proc/self/fd").length;
    await once();
    const before = descriptors();
    for (let n = 0; n < 10; n++) await once();
    // A namespace lives by its descriptors and processes alone; of nft's, none lives on.
    expect(descriptors()).toBe(before);
  });

  test("that is empty is no more than the model", async () => {
    const network = await create(allow([]));
    expect(await get(network, ALLOWED, 80)).toBe("ECONNREFUSED");
    expect((await network.prove()).isClosed).toBe(true);
  });

  test("cuts a connection of the phase before and closes its hosts", async () => {
    const port = await serve(ALLOWED, "web");
    const network = await create(allow([ALLOWED]));
    const place = { host: ALLOWED, port };
    expect(await inside(network, { kind: "hold", ...place })).toBe("connected");
    await network.set({ kind: "model", host: "127.0.0.1", port: 9 });
    expect(await inside(network, { kind: "ended", ...place })).toBe("ended");
    expect(await get(network, ALLOWED, port)).toBe("ECONNREFUSED");
    expect((await network.prove()).isClosed).toBe(true);
    await network.set(allow([ALLOWED]));
    expect(await get(network, ALLOWED, port)).toBe("web");
  });

  test("refuses a connection made to the relay's own address, and counts it", async () => {
    const network = await create(allow([ALLOWED]));
    const listening = relayPort(network);
    expect(await get(network, "127.0.0.1", listening)).toMatch(/^(ECONNRESET|)$/);
    expect(network.nDenied).toBe(1);
  });

  test("whose host does not answer ends the connection", async () => {
    const port = await serve(OTHER, "elsewhere");
    const network = await create(allow([ALLOWED]));
    expect(await get(network, ALLOWED, port)).toMatch(/^(ECONNRESET|)$/);
  });

  test("carries bytes both ways after one side has said all", async () => {
    const server = net.createServer({ allowHalfOpen: true }, (socket) => {
      let n = 0;
      socket.on("data", (chunk) => (n += chunk.byteLength)).on("end", () => socket.end(`${n}`));
    });
    await new Promise<void>((resolve) => server.listen(0, ALLOWED, resolve));
    onEnd.push(() => server.close());
    const network = await create(allow([ALLOWED]));
    const { port } = server.address() as net.AddressInfo;
    expect(await inside(network, { kind: "send", host: ALLOWED, port, bytes: 3_000_000 })).toBe("3000000");
  });
});

/** The port the relay of the allowed hosts has inside: the only one that listens besides the model endpoint. */
function relayPort(network: SandboxNetwork): number {
  const fd = openSync(network.namespacePath, "r");
  try {
    const sockets = withinNetworkNamespace(fd, () => readFileSync("/proc/thread-self/net/tcp", "utf8"));
    const listening = [...sockets.matchAll(/^\s*\d+: [0-9A-F]{8}:([0-9A-F]{4}) \S+ 0A /gm)];
    return listening.map(([, port]) => Number.parseInt(port!, 16)).find((port) => port !== 8080)!;
  } finally {
    closeSync(fd);
  }
}
