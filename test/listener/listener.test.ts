/**
 * Two live trials at a real proxy: a token is good through its own sandbox's endpoint and through no other (DESIGN §7),
 * however the agent that got hold of it tries. Needs what the runc backend needs.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, ListenerWorld, spoken } from "./world.js";

const whyNot = await ListenerWorld.whyNot();
if (whyNot !== undefined) console.log(`sandboxes at a proxy are not tried: ${whyNot}`);

describe.skipIf(whyNot !== undefined)("two live trials", () => {
  let world: ListenerWorld;
  beforeAll(async () => {
    world = await ListenerWorld.start();
  }, 120_000);
  afterAll(() => world?.stop());

  test("speak through their own endpoints, and not through each other's", async () => {
    const { trials, replica, fixture } = world;
    const [a, b] = trials;
    for (const { sandbox, token } of trials)
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
    const [a, b] = world.trials;
    expect(await spoken(b.sandbox, `@mortise/1 ${a.listenerKey}\r\n${call(a.token)}`)).toBe("400");
    const own = call(b.token).replace("Connection: close", "Connection: keep-alive");
    expect(await spoken(b.sandbox, `${own}@mortise/1 ${a.listenerKey}\r\n${call(a.token)}`)).toMatch(
      /^(200 )?400$/,
    );
  });

  test("find no listener key inside", async () => {
    const [a] = world.trials;
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
    for (const { listenerKey } of world.trials) expect(said).not.toContain(listenerKey);
  });

  test("have tokens that are nothing outside a sandbox", async () => {
    const [a] = world.trials;
    const answer = await fetch(`http://${world.replica.modelAddress}/v1/models`, {
      headers: { authorization: `Bearer ${a.token}` },
    });
    expect([answer.status, ((await answer.json()) as { error: { code: string } }).error.code]).toEqual([
      403,
      "wrong_listener",
    ]);
  });
});
