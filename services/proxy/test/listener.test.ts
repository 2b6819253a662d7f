/**
 * Whose listener a connection comes from: the line before HTTP, and the tokens that are good only behind it. A real
 * proxy, raw sockets. With real sandboxes: test/listener.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ListenerKeys } from "../src/session/listener-key.js";
import { until } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";
import { ScriptedEngine } from "./scripted-engine.js";

let fixture: ProxyFixture;
let replica: Replica;
const sockets: Socket[] = [];

beforeAll(async () => {
  fixture = await ProxyFixture.create();
  replica = await fixture.start(() => new ScriptedEngine());
  await fixture.publishWeights(0);
  await openSession(replica, "first");
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await fixture.stop();
});

async function opened(trial: string, throughListener: boolean) {
  await openSession(replica, trial, { throughListener });
  return replica.rpc.openSession({ run: RUN, trial, rngKey: `1/task/${trial}`, throughListener });
}

/** A connection whose answers can be waited for. */
function dial(): { socket: Socket; received: () => string; statuses: () => string[] } {
  const [host, port] = replica.modelAddress.split(":");
  const socket = connect({ host: host!, port: Number(port) });
  sockets.push(socket);
  let text = "";
  socket.on("data", (chunk) => (text += chunk)).on("error", () => undefined);
  const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status!);
  return { socket, received: () => text, statuses };
}

const line = (key: string) => `@mortise/1 ${key}\r\n`;
const models = (token: string) =>
  `GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;

async function statusOf(sent: string): Promise<string> {
  const { socket, statuses } = dial();
  socket.write(sent);
  await until(() => statuses().length > 0);
  return statuses()[0]!;
}

const refusals = async () =>
  Number(
    /requests_refused_total\{code="MORTISE_PROVIDER_LISTENER"[^}]*\} (\d+)/.exec(
      await replica.metrics.render(),
    )?.[1] ?? 0,
  );

describe("a session that is called through its listener", () => {
  test("is open behind its own line, and nowhere else; what is refused is said and counted", async () => {
    const [own, other] = [await opened("own", true), await opened("other", true)];
    expect(own.listenerKey).not.toBe("");
    expect(await statusOf(line(own.listenerKey) + models(own.token))).toBe("200");
    const before = await refusals();
    for (const first of [line(other.listenerKey), line("no.key.of-ours"), line(""), "@mortise/1\r\n", ""])
      expect([first, await statusOf(first + models(own.token))]).toEqual([first, "403"]);
    expect(await refusals()).toBe(before + 5);
    const { socket, received } = dial();
    socket.write(line(other.listenerKey) + models(own.token));
    await until(() => received().includes("}"));
    expect(received()).toContain('"code":"wrong_listener"');
    for (const secret of [own.token, own.listenerKey, other.listenerKey])
      expect(received()).not.toContain(secret);
  });

  test("keeps its listener for every request of a connection, however the line arrives", async () => {
    const { token, listenerKey } = await opened("slow", true);
    const { socket, statuses } = dial();
    const first = line(listenerKey) + models(token);
    for (const byte of first.slice(0, 40)) {
      socket.write(byte);
      await new Promise((resolve) => setImmediate(resolve));
    }
    socket.write(first.slice(40));
    await until(() => statuses().length === 1);
    socket.write(models(token) + models(token));
    await until(() => statuses().length === 3);
    expect(statuses()).toEqual(["200", "200", "200"]);
  });

  test("is not reached by whoever says another line after the first", async () => {
    const [own, thief] = [await opened("victim", true), await opened("thief", true)];
    expect(await statusOf(line(thief.listenerKey) + line(own.listenerKey) + models(own.token))).toBe("400");
    const { socket, statuses } = dial();
    socket.write(line(thief.listenerKey) + models(thief.token));
    await until(() => statuses().length === 1);
    socket.write(line(own.listenerKey) + models(own.token));
    await until(() => statuses().length === 2);
    expect(statuses()).toEqual(["200", "400"]);
  });
});

test("a session opened for direct use is open directly and behind its own line, not behind another's", async () => {
  const [direct, other] = [await opened("direct", false), await opened("beside", false)];
  expect(await statusOf(models(direct.token))).toBe("200");
  expect(await statusOf(line(direct.listenerKey) + models(direct.token))).toBe("200");
  expect(await statusOf(line(other.listenerKey) + models(direct.token))).toBe("403");
});

test("a line without an end is cut off; a connection that says nothing ends with its client", async () => {
  const endless = dial();
  endless.socket.write(`@mortise/1 ${"x".repeat(2000)}`);
  await once(endless.socket, "close");
  const silent = dial();
  await once(silent.socket, "connect");
  silent.socket.end();
  await once(silent.socket, "close");
  expect([endless.received(), silent.received()]).toEqual(["", ""]);
});

test("listener keys are of one site and one session", () => {
  const keys = new ListenerKeys("secret");
  const key = keys.issue({ run: "r", trial: "t" });
  expect(keys.verify(key)).toEqual({ run: "r", trial: "t" });
  expect(new ListenerKeys("other").verify(key)).toBeUndefined();
  for (const changed of [
    key.replace("r.t.", "r.u."),
    key.replace("r.t.", "rt."),
    `${key}x`,
    key.slice(0, -1),
    "",
  ])
    expect(keys.verify(changed)).toBeUndefined();
});
