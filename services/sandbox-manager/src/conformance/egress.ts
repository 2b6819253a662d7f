/**
 * The egress matrix of an allow-list, tried by a process inside: the hosts it names, and everything beside them.
 * Hosts elsewhere are addresses of this host's loopback that only these cases listen on.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { isSteeringAvailable } from "../backend/network/steering.js";
import type { Sandbox } from "../backend/types.js";
import { type Kit, started, text, withModel } from "./kit.js";

const ALLOWED = "127.86.1.1";
const NAMED = "127.86.1.2";
const OTHER = "127.86.1.3";
const NAME = "mirror.example";

/** For the backend under test. */
export const ALLOWED_HOSTS = {
  privateHosts: [ALLOWED, NAME],
  resolve: async (name: string) => (name === NAME ? [NAMED] : []),
};

const hasNft = await isSteeringAvailable();

/** Prints, a line each, what came of every `[label, host, port]`: content or an error code. */
const ASK = `const http = require("node:http");
  const ask = ([label, host, port]) => new Promise((done) => http.get({ host, port, timeout: 3000, agent: false }, (reply) => {
    let text = ""; reply.on("data", (chunk) => (text += chunk)).on("end", () => done(label + ": " + text));
  }).on("error", ({ code }) => done(label + ": " + code)).on("timeout", function () { this.destroy(); }));
  (async () => { for (const one of TARGETS) console.log(await ask(one)); })();`;

/** Sends one datagram and says whether the kernel took it. */
const DATAGRAM = `const socket = require("node:dgram").createSocket("udp4");
  socket.on("error", ({ code }) => { console.log(code); socket.close(); });
  socket.send("x", 53, "8.8.8.8", (error) => { console.log(error ? error.code : "sent"); socket.close(); });`;

/** Opens a connection, says so, and says when it ends. */
const HOLD = `const socket = require("node:net").connect(PORT, "${ALLOWED}", () => console.log("open"));
  socket.resume().on("error", () => undefined).on("close", () => console.log("cut"));`;

type Target = readonly [label: string, host: string, port: number];

export function describeEgress(kit: Kit): void {
  describe.skipIf(!kit.can.isolation)("an allow-list", () => {
    if (kit.can.allowLists === false) {
      test("is refused where there is no way to give one", async () => {
        const network = { kind: "allow-list", host: "127.0.0.1", port: 9, allowedHosts: [] } as const;
        await expect(kit.create({ network })).rejects.toMatchObject({ code: "MORTISE_SANDBOX_NETWORK" });
      });
      return;
    }
    if (!hasNft) {
      test("is refused where nft is not installed", async () => {
        const network = { kind: "allow-list", host: "127.0.0.1", port: 9, allowedHosts: [ALLOWED] } as const;
        await expect(kit.create({ network })).rejects.toThrow(/nft/);
      });
      return;
    }

    const servers: http.Server[] = [];
    afterEach(() => {
      for (const server of servers.splice(0)) {
        server.closeAllConnections();
        server.close();
      }
    });
    async function serve(host: string, answer: string, port = 0): Promise<number> {
      const server = http.createServer((_, reply) => reply.end(answer));
      servers.push(server);
      await new Promise<void>((resolve) => server.listen(port, host, resolve));
      return (server.address() as AddressInfo).port;
    }
    async function ask(sandbox: Sandbox, targets: readonly Target[]): Promise<string[]> {
      const script = ASK.replace("TARGETS", JSON.stringify(targets));
      const result = await kit.run(sandbox, ["node", "-e", script]);
      return text(result.stdout.bytes).trimEnd().split("\n");
    }

    test("opens its hosts on every port, and nothing beside them", async () => {
      await withModel(async (model) => {
        const [web, api, mirror] = [
          await serve(ALLOWED, "web"),
          await serve(ALLOWED, "api"),
          await serve(NAMED, "mirror"),
        ];
        await serve(OTHER, "other", web);
        const onHost = await serve("0.0.0.0", "host");
        const sandbox = await kit.create({
          network: { kind: "allow-list", ...model, allowedHosts: [ALLOWED, NAME] },
        });
        const proof = await sandbox.proveNetwork();
        expect(proof.probes.filter(({ expected, observed }) => expected !== observed)).toEqual([]);
        expect(
          proof.probes.filter(({ observed }) => observed === "reachable").map(({ name }) => name),
        ).toEqual(["model endpoint", `allowed ${ALLOWED}`, `allowed ${NAMED}`]);
        expect(
          await ask(sandbox, [
            ["model", "127.0.0.1", 8080],
            ["allowed", ALLOWED, web],
            ["another port", ALLOWED, api],
            ["a name", NAME, mirror],
            ["another host, same port", OTHER, web],
            ["the proxy itself", "127.0.0.1", model.port],
            ["a port of this host", "127.0.0.1", onHost],
            ["docker0", "172.17.0.1", onHost],
            ["a public address", "1.1.1.1", 443],
            ["a private address", "10.0.0.1", 443],
            ["metadata", "169.254.169.254", 80],
            ["metadata over IPv6", "fd00:ec2::254", 80],
            ["IPv6", "2606:4700:4700::1111", 443],
          ]),
        ).toEqual([
          "model: model saw /",
          "allowed: web",
          "another port: api",
          "a name: mirror",
          "another host, same port: ECONNREFUSED",
          "the proxy itself: ECONNREFUSED",
          "a port of this host: ECONNREFUSED",
          "docker0: ENETUNREACH",
          "a public address: ENETUNREACH",
          "a private address: ENETUNREACH",
          "metadata: ENETUNREACH",
          expect.stringMatching(/^metadata over IPv6: E(NETUNREACH|ADDRNOTAVAIL|AFNOSUPPORT)$/),
          expect.stringMatching(/^IPv6: E(NETUNREACH|ADDRNOTAVAIL|AFNOSUPPORT)$/),
        ]);
        expect(text((await kit.run(sandbox, ["node", "-e", DATAGRAM])).stdout.bytes)).toBe("ENETUNREACH\n");
        expect((await sandbox.stats()).nDenied).toBeGreaterThanOrEqual(5);
      });
    });

    test("of the setup phase ends with it, its connections too", async () => {
      await withModel(async (model) => {
        const port = await serve(ALLOWED, "web");
        const sandbox = await kit.create({
          network: { kind: "allow-list", ...model, allowedHosts: [ALLOWED] },
        });
        const script = HOLD.replace("PORT", String(port));
        const running = await started(
          (changes) => kit.run(sandbox, ["node", "-e", script], changes),
          "open\n",
        );
        await sandbox.setNetwork({ kind: "model", ...model });
        await running.result;
        expect(running.output()).toBe("open\ncut\n");
        expect(await ask(sandbox, [["allowed before", ALLOWED, port]])).toEqual([
          "allowed before: ECONNREFUSED",
        ]);
        expect((await sandbox.proveNetwork()).isClosed).toBe(true);
      });
    });

    test("that names what no task may reach makes no sandbox", async () => {
      for (const host of ["169.254.169.254", "10.0.0.1", "*.example", "127.0.0.1"])
        await expect(
          kit.create({ network: { kind: "allow-list", host: "127.0.0.1", port: 9, allowedHosts: [host] } }),
        ).rejects.toMatchObject({ code: "MORTISE_SANDBOX_NETWORK" });
    });
  });
}
