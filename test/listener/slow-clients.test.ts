/**
 * An agent that holds all connections it can get, sends headers and bodies a byte at a time, or headers that are too large:
 * its own endpoint is what it fills. The trial beside it is answered as if it were alone. A real proxy, real sandboxes.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { started } from "../../services/sandbox-manager/src/conformance/kit.js";
import { call, ListenerWorld, spoken } from "./world.js";

const whyNot = await ListenerWorld.whyNot();
if (whyNot !== undefined) console.log(`slow clients in sandboxes are not tried: ${whyNot}`);

/** As the relay gives one sandbox. */
const MAX_CONNECTIONS = 64;

/** Opens connections, says BEGIN on each and a byte of it every now and then, and prints how many stay open. */
const HOLD = `const net = require("node:net"); let open = 0, cut = 0;
  for (let n = 0; n < 200; n++) { const socket = net.connect(8080, "127.0.0.1");
    socket.on("connect", () => open++).on("close", () => cut++).on("error", () => {}).resume();
    if (process.env.BEGIN === "") continue;
    socket.write(Buffer.from(process.env.BEGIN, "base64"));
    setInterval(() => socket.write("x"), 50); }
  let last = -1;
  setInterval(() => { if (open === 200 && open - cut === last) console.log("held " + last); last = open - cut; }, 300);`;

describe.skipIf(whyNot !== undefined)("an agent that is slow on purpose", () => {
  let world: ListenerWorld;
  beforeAll(async () => {
    world = await ListenerWorld.start();
  }, 120_000);
  afterAll(() => world?.stop());

  const line = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n";
  const begins = {
    "without a byte": () => "",
    "in headers": () => `${line}X-Slow: `,
    "in a body": (token: string) =>
      `${line}Authorization: Bearer ${token}\r\nContent-Length: 1000000\r\n\r\n{"x`,
  };

  test.each(Object.entries(begins))(
    "holds its share of connections %s, and nobody else's",
    async (_, begin) => {
      const [slow, other] = world.trials;
      const stop = new AbortController();
      const holding = await started(
        (changes) =>
          slow.sandbox.exec({
            argv: ["node", "-e", HOLD],
            environment: { PATH: "/usr/bin", BEGIN: Buffer.from(begin(slow.token)).toString("base64") },
            timeoutMs: 60_000,
            signal: stop.signal,
            ...changes,
          }),
        "held",
      );
      expect(Number(/held (\d+)/.exec(holding.output())![1])).toBeLessThanOrEqual(MAX_CONNECTIONS);
      for (let n = 0; n < 5; n++) expect(await spoken(other.sandbox, call(other.token))).toBe("200");
      expect(await spoken(slow.sandbox, call(slow.token))).toBe("nothing");
      stop.abort();
      expect((await holding.result).outcome).toEqual({ kind: "cancelled" });
      // What it held is free again, for itself too.
      await expect.poll(() => spoken(slow.sandbox, call(slow.token))).toBe("200");
    },
    90_000,
  );

  test("with headers that are too large is refused, and the proxy keeps none of them", async () => {
    const [slow, other] = world.trials;
    const before = process.memoryUsage().rss;
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Large: ${"x".repeat(60_000)}`;
    for (let n = 0; n < 5; n++)
      // The refusal does not always outrun the end of the connection.
      expect(await spoken(slow.sandbox, head)).toMatch(/^(431|nothing)$/);
    expect(await spoken(other.sandbox, call(other.token))).toBe("200");
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
  }, 60_000);
});
