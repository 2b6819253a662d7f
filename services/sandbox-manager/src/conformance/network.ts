/** What can be reached from inside. */
import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { type Kit, started, text, withModel } from "./kit.js";

const GET = `require("node:http").get("http://127.0.0.1:8080/v1/models", (reply) => reply.pipe(process.stdout))
  .on("error", (error) => { console.log(error.code); process.exitCode = 9; })`;
/** Says so whenever what it finds at the model endpoint changes. */
const WATCH = `let last; setInterval(() => require("node:http").get("http://127.0.0.1:8080/",
  (reply) => { reply.resume(); say("open"); }).on("error", () => say("closed")), 30);
  function say(now) { if (now !== last) console.log(last = now); }`;

export function describeNetwork(kit: Kit): void {
  describe("the network", () => {
    test("has the model at 127.0.0.1:8080, until quiesce", async () => {
      await withModel(async (address) => {
        const sandbox = await kit.create({ network: { kind: "model", ...address } });
        const result = await kit.run(sandbox, ["node", "-e", GET]);
        expect(text(result.stdout.bytes)).toBe("model saw /v1/models");
        expect(sandbox.isModelUnreachable).toBe(false);
        await sandbox.quiesce();
        await expect(kit.run(sandbox, ["true"])).rejects.toThrow("quiesced");
      });
    });

    test("says whose it is before a byte from inside, on every connection", async () => {
      const heard: string[] = [];
      const proxy = net.createServer((socket) => {
        const at = heard.push("") - 1;
        socket
          .on("error", () => undefined)
          .on("data", (chunk) => {
            const said = `${heard[at]}${chunk}`;
            heard[at] = said;
            if (said.endsWith("\r\n\r\n")) socket.end("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
          });
      });
      await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
      const { port } = proxy.address() as net.AddressInfo;
      const listenerKey = "run.trial.code-of-43_characters";
      const sandbox = await kit.create({ network: { kind: "model", host: "127.0.0.1", port, listenerKey } });
      for (let n = 0; n < 2; n++) await kit.run(sandbox, ["node", "-e", GET]);
      // A backend may look whether the endpoint is there; what it then says is the line as well.
      const asked = heard.filter((text) => text.includes("GET "));
      expect(asked).toHaveLength(2);
      for (const text of heard.filter((one) => one !== ""))
        expect(text.startsWith(`@mortise/1 ${listenerKey}\r\n`)).toBe(true);
      expect(asked[0]).toMatch(/^[^\n]*\nGET \/v1\/models HTTP\/1\.1\r\n/);
      proxy.close();
    });

    test.skipIf(!kit.can.isolation)("has nothing else", async () => {
      await withModel(async ({ host, port }) => {
        const probe = `const net = require("node:net");
          const targets = [[${port}, "${host}"], [53, "1.1.1.1"], [80, "169.254.169.254"], [8080, "::1"], [22, "172.17.0.1"]];
          Promise.all(targets.map(([port, host]) => new Promise((done) => {
            const socket = net.connect({ port, host, timeout: 2000 });
            socket.on("connect", () => done("open " + host)).on("error", () => done("")).on("timeout", () => done(""));
          }))).then((found) => { console.log(found.filter(Boolean).join()); process.exit(); });`;
        const closed = await kit.create({ network: { kind: "model", host: "127.0.0.1", port } });
        const result = await kit.run(closed, ["node", "-e", probe]);
        expect(result.outcome).toEqual({ kind: "exited", code: 0 });
        expect(text(result.stdout.bytes)).toBe("\n");
        const without = await kit.run(await kit.create(), ["node", "-e", GET]);
        expect(text(without.stdout.bytes)).toBe("ECONNREFUSED\n");
      });
    });

    test.skipIf(!kit.can.isolation)("has no resolver, and knows its own names", async () => {
      const sandbox = await kit.create();
      const lookup = `const { lookup } = require("node:dns").promises; (async () => {
        for (const name of ["localhost", require("node:os").hostname(), "example.com"])
          console.log(await lookup(name, 4).then(({ address }) => address, ({ code }) => code)); })();`;
      const result = await kit.run(sandbox, ["node", "-e", lookup]);
      expect(text(result.stdout.bytes)).toMatch(/^127\.0\.0\.1\n127\.0\.0\.1\nE\w+\n$/);
    });

    test("can be replaced between commands", async () => {
      await withModel(async (address) => {
        const sandbox = await kit.create();
        await sandbox.setNetwork({ kind: "model", ...address });
        expect(text((await kit.run(sandbox, ["node", "-e", GET])).stdout.bytes)).toBe("model saw /v1/models");
        await sandbox.setNetwork({ kind: "model", ...address });
        expect(text((await kit.run(sandbox, ["node", "-e", GET])).stdout.bytes)).toBe("model saw /v1/models");
        await sandbox.setNetwork({ kind: "none" });
        expect(text((await kit.run(sandbox, ["node", "-e", GET])).stdout.bytes)).toBe("ECONNREFUSED\n");
      });
    });

    test.skipIf(!kit.can.isolation)("can be replaced under a running command", async () => {
      await withModel(async (address) => {
        const sandbox = await kit.create();
        const running = await started(
          (changes) => kit.run(sandbox, ["node", "-e", WATCH], changes),
          "closed\n",
        );
        await sandbox.setNetwork({ kind: "model", ...address });
        await expect.poll(running.output).toBe("closed\nopen\n");
        await sandbox.setNetwork({ kind: "none" });
        await expect.poll(running.output).toBe("closed\nopen\nclosed\n");
        await sandbox.quiesce();
        await running.result;
      });
    });

    test.skipIf(!kit.can.isolation)("proves that it is closed", async () => {
      await withModel(async (address) => {
        const sandbox = await kit.create();
        const without = await sandbox.proveNetwork();
        expect(without.isClosed).toBe(true);
        expect(without.probes.length).toBeGreaterThan(4);
        await sandbox.setNetwork({ kind: "model", ...address });
        const withIt = await sandbox.proveNetwork();
        expect(withIt.isClosed).toBe(true);
        expect(withIt.probes.filter(({ observed }) => observed === "reachable")).toHaveLength(1);
      });
    });

    test.skipIf(kit.can.isolation)("is proved open where nothing closes it", async () => {
      const proof = await (await kit.create()).proveNetwork();
      expect(proof.isClosed).toBe(false);
      expect(proof.probes.some(({ expected, observed }) => expected !== observed)).toBe(true);
    });

    test("says when the proxy behind the model endpoint is not there", async () => {
      const sandbox = await kit.create({ network: { kind: "model", host: "127.0.0.1", port: 9 } });
      const asking = kit.run(sandbox, ["node", "-e", GET], { timeoutMs: 5_000 });
      await expect.poll(() => sandbox.isModelUnreachable).toBe(true);
      await delay(0);
      await sandbox.quiesce();
      await asking;
    });
  });
}
