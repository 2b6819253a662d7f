/**
 * How the kubernetes backend speaks to an API server and what it makes of its answers, against a FAKE one. Real pods
 * are `npm run test:kubernetes`.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";
import type { V1Pod } from "@kubernetes/client-node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { World } from "./world.js";

let world: World;
beforeEach(async () => {
  world = await new World().start();
});
afterEach(() => world.stop());

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const podOf = (): V1Pod => [...world.api.pods.values()][0]!;

describe("a command", () => {
  test("ends with its code and streams, and nothing of it is in a URL", async () => {
    await world.backend.start();
    const sandbox = await world.create();
    const ended = await world.sh(sandbox, 'echo "$FROM $WORD"; echo no >&2; exit 3', {
      environment: { WORD: "secret" },
    });
    expect(ended.outcome).toEqual({ kind: "exited", code: 3 });
    expect(text(ended.stdout.bytes)).toBe("image secret\n");
    expect(text(ended.stderr.bytes)).toBe("no\n");
    const urls = world.api.asked.filter((line) => line.startsWith("EXEC"));
    expect(urls.length).toBeGreaterThan(3);
    expect(urls.filter((line) => /secret|WORD|echo/.test(line))).toEqual([]);
  });

  test("gets its input whole, is bounded in its output, and may die by a signal", async () => {
    await world.backend.start();
    const sandbox = await world.create();
    const counted = await world.sh(sandbox, "wc -c", { stdin: Buffer.alloc(500_000, "x") });
    expect(text(counted.stdout.bytes).trim()).toBe("500000");
    const much = await world.sh(sandbox, "seq 1 20000");
    expect(much.stdout.bytes.byteLength).toBe(4096);
    expect(much.stdout.totalBytes).toBeGreaterThan(100_000);
    expect((await world.sh(sandbox, "kill -SEGV $$")).outcome).toEqual({
      kind: "signalled",
      signal: "SIGSEGV",
    });
    expect((await sandbox.exec({ argv: ["/no/such"], environment: {}, timeoutMs: 5000 })).outcome.kind).toBe(
      "refused",
    );
  });

  test("is begun once a busy server opens its stream", async () => {
    await world.backend.start();
    const sandbox = await world.create();
    world.api.execsToRefuse = 2;
    expect((await world.sh(sandbox, "exit 4")).outcome).toEqual({ kind: "exited", code: 4 });
    expect(world.helper.requests.filter(({ operation }) => operation === "run")).toHaveLength(1);
  });

  test("is ended by its time and by its signal", async () => {
    await world.backend.start();
    const sandbox = await world.create();
    expect((await world.sh(sandbox, "exec sleep 600", { timeoutMs: 300 })).outcome).toEqual({
      kind: "timeout",
    });
    const controller = new AbortController();
    const running = world.sh(sandbox, "echo up; exec sleep 600", {
      signal: controller.signal,
      onStdout: () => controller.abort(),
    });
    expect((await running).outcome).toEqual({ kind: "cancelled" });
  });

  test.each([
    ["OOMKilled", { kind: "out-of-memory", kills: 1 }],
    ["Error", { kind: "lost", reason: expect.stringContaining("exit code 137") }],
  ])("whose container ended as %s says so", async (reason, outcome) => {
    await world.backend.start();
    const sandbox = await world.create();
    world.helper.override = ({ operation }, exec) => {
      if (operation !== "run") return false;
      const pod = podOf();
      const statuses = pod.status!.containerStatuses!.map((status) =>
        status.name === "sandbox" ? { ...status, state: { terminated: { reason, exitCode: 137 } } } : status,
      );
      exec.cut();
      world.api.become(pod.metadata!.name!, { ...pod.status, phase: "Failed", containerStatuses: statuses });
      return true;
    };
    expect((await world.sh(sandbox, "true")).outcome).toEqual(outcome);
  });

  test("of an evicted pod is lost, with the node's words", async () => {
    await world.backend.start();
    const sandbox = await world.create();
    world.helper.override = ({ operation }, exec) => {
      if (operation !== "run") return false;
      exec.cut();
      world.api.become(podOf().metadata!.name!, {
        phase: "Failed",
        reason: "Evicted",
        message: "low on disk",
      });
      return true;
    };
    expect((await world.sh(sandbox, "true")).outcome).toEqual({
      kind: "lost",
      reason: "Evicted: low on disk",
    });
  });

  test("is lost with its sandbox", async () => {
    await world.backend.start();
    const sandbox = await world.create();
    let isUp = false;
    const running = world.sh(sandbox, "echo up; exec sleep 600", { onStdout: () => (isUp = true) });
    await expect.poll(() => isUp).toBe(true);
    await sandbox.destroy();
    expect((await running).outcome.kind).toBe("lost");
    expect(world.api.pods.size).toBe(0);
  });
});

describe("the model", () => {
  test("is reached through the stream, both ways and by several at once, and no more after quiesce", async () => {
    const server = http.createServer(async (request, reply) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      reply.end(Buffer.concat(chunks));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    await world.backend.start();
    const sandbox = await world.create();
    const { port } = server.address() as AddressInfo;
    await sandbox.setNetwork({ kind: "model", host: "127.0.0.1", port });
    // More than the window of a connection, which is 256 KiB.
    const bodies = [1, 2, 3].map((n) => Buffer.alloc(900_000 + n, n));
    const at = `http://127.0.0.1:${world.helper.modelPort}/`;
    const replies = await Promise.all(bodies.map((body) => fetch(at, { method: "POST", body })));
    for (const [n, reply] of replies.entries())
      expect(bodies[n]!.equals(Buffer.from(await reply.arrayBuffer()))).toBe(true);
    expect(sandbox.modelTimeMs).toBeGreaterThan(0);
    const proof = await sandbox.proveNetwork();
    expect(proof.isClosed).toBe(true);
    expect(proof.probes.filter(({ observed }) => observed === "reachable").map(({ name }) => name)).toEqual([
      "model endpoint",
    ]);
    expect(proof.probes.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["API server", "kubelet of the node"]),
    );
    await sandbox.quiesce();
    await expect.poll(() => world.helper.modelPort).toBe(undefined);
    server.closeAllConnections();
    server.close();
  });

  test("is not claimed where the helper cannot listen", async () => {
    await world.backend.start();
    const sandbox = await world.create();
    world.api.onExec = (exec) => {
      if (exec.argv[1] !== "relay") return world.helper.serve(exec);
      exec.stderr("bind: address already in use");
      exec.end(1);
    };
    await expect(sandbox.setNetwork({ kind: "model", host: "127.0.0.1", port: 9 })).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_SETUP",
      message: expect.stringContaining("address already in use"),
    });
  });
});
