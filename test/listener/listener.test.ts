/**
 * Two live trials at a real proxy, each in a sandbox of its own: a token is good through its own sandbox's endpoint and
 * through no other (DESIGN §7), however the agent that got hold of it tries. Needs what the runc backend needs.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSession, ProxyFixture, type Replica, RUN } from "../../services/proxy/test/proxy-fixture.js";
import { ScriptedEngine } from "../../services/proxy/test/scripted-engine.js";
import { RuncBackend } from "../../services/sandbox-manager/src/backend/runc/backend.js";
import type { Sandbox } from "../../services/sandbox-manager/src/backend/types.js";
import { parseModelAddress } from "../../services/sandbox-manager/src/trial/reach.js";

const MIB = 1024 * 1024;
const base = mkdtempSync(path.join(tmpdir(), "mortise-listener-"));
const backend = new RuncBackend({ stateDirectory: path.join(base, "state"), runc: "runc" });
const availability = await backend.availability();
if (!availability.ok) console.log(`sandboxes at a proxy are not tried: ${availability.reason}`);
afterAll(() => rmSync(base, { recursive: true, force: true }));

/** Writes the bytes it is given to the model endpoint and prints the statuses that come back. */
const SPEAK = `const socket = require("node:net").connect(8080, "127.0.0.1");
  let text = ""; socket.on("data", (chunk) => (text += chunk)).on("error", () => {});
  socket.on("close", () => console.log((text.match(/HTTP\\/1\\.1 \\d+/g) ?? ["nothing"]).map((one) => one.slice(9)).join(" ")));
  socket.write(Buffer.from(process.env.BYTES, "base64"));`;

describe.skipIf(!availability.ok)("two live trials", () => {
  let fixture: ProxyFixture;
  let replica: Replica;
  const trials: { token: string; listenerKey: string; sandbox: Sandbox }[] = [];

  beforeAll(async () => {
    fixture = await ProxyFixture.create();
    replica = await fixture.start(() => new ScriptedEngine({ choose: () => ({ ids: fixture.ids("done") }) }));
    await fixture.publishWeights(0);
    await openSession(replica, "first");
    await backend.start();
    const image = await backend.prepareImage({ kind: "host" });
    const workspace = await backend.prepareTree({ kind: "files", files: [] });
    for (const trial of ["a", "b"]) {
      const request = { run: RUN, trial, rngKey: `1/task/${trial}`, throughListener: true };
      const { token, modelAddress, listenerKey } = await replica.rpc.openSession(request);
      const sandbox = await backend.create({
        id: `listener-${trial}`,
        image,
        workspace,
        mounts: [],
        limits: { cpus: 1, memoryBytes: 192 * MIB, pids: 48, diskBytes: 16 * MIB, outputBytes: 65_536 },
        network: { kind: "model", ...parseModelAddress(modelAddress, listenerKey) },
      });
      trials.push({ token, listenerKey, sandbox });
    }
  }, 120_000);
  afterAll(async () => {
    await backend.stop();
    await fixture?.stop();
  });

  async function spoken(sandbox: Sandbox, sent: string): Promise<string> {
    const { stdout } = await sandbox.exec({
      argv: ["node", "-e", SPEAK],
      environment: { PATH: "/usr/bin", BYTES: Buffer.from(sent).toString("base64") },
      timeoutMs: 20_000,
    });
    return Buffer.from(stdout.bytes).toString().trim();
  }

  const call = (token: string, place: "header" | "path" | "key" = "header") => {
    const body = JSON.stringify({ messages: [{ role: "user", content: "fix" }] });
    const credentials = {
      header: `Authorization: Bearer ${token}`,
      path: "X-None: x",
      key: `x-api-key: ${token}`,
    };
    return [
      `POST ${place === "path" ? `/s/${token}` : ""}/v1/chat/completions HTTP/1.1`,
      ...["Host: x", "Connection: close", `Content-Length: ${body.length}`, credentials[place]],
      `\r\n${body}`,
    ].join("\r\n");
  };

  test("speak through their own endpoints, and not through each other's", async () => {
    const [a, b] = trials as [(typeof trials)[0], (typeof trials)[0]];
    for (const { sandbox, token } of [a, b])
      for (const place of ["header", "path", "key"] as const)
        expect(await spoken(sandbox, call(token, place))).toBe("200");
    for (const [thief, { token }] of [
      [b, a],
      [a, b],
    ] as const)
      for (const place of ["header", "path", "key"] as const)
        expect(await spoken(thief.sandbox, call(token, place))).toBe("403");
    expect(await replica.metrics.render()).toMatch(
      /refused_total\{code="MORTISE_PROVIDER_LISTENER"[^}]*\} 6\n/,
    );
    expect((await fixture.turns("a")).length).toBe(3);
  });

  test("cannot speak for another, even with its listener's key", async () => {
    const [a, b] = trials as [(typeof trials)[0], (typeof trials)[0]];
    expect(await spoken(b.sandbox, `@mortise/1 ${a.listenerKey}\r\n${call(a.token)}`)).toBe("400");
    const own = call(b.token).replace("Connection: close", "Connection: keep-alive");
    expect(await spoken(b.sandbox, `${own}@mortise/1 ${a.listenerKey}\r\n${call(a.token)}`)).toMatch(
      /^(200 )?400$/,
    );
  });

  test("find no listener key inside", async () => {
    const [a] = trials as [(typeof trials)[0]];
    const looked = await a.sandbox.exec({
      argv: [
        "sh",
        "-c",
        "cat /proc/self/environ /proc/self/cmdline /proc/self/mountinfo /etc/hosts; ls -R /etc /opt",
      ],
      environment: { PATH: "/usr/bin" },
      timeoutMs: 20_000,
    });
    const said = Buffer.from(looked.stdout.bytes).toString();
    expect(said).toContain("/etc/hosts");
    for (const { listenerKey } of trials) expect(said).not.toContain(listenerKey);
  });

  test("with a token taken along, nobody outside a sandbox gets an answer either", async () => {
    const [a] = trials as [(typeof trials)[0]];
    const answer = await fetch(`http://${replica.modelAddress}/v1/models`, {
      headers: { authorization: `Bearer ${a.token}` },
    });
    expect([answer.status, ((await answer.json()) as { error: { code: string } }).error.code]).toEqual([
      403,
      "wrong_listener",
    ]);
  });
});
