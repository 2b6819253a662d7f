/**
 * The docker backend with an engine that is elsewhere: the conformance kit over TLS, what becomes of sandboxes whose
 * helper is lost, and what is refused before anything is sent.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { SiteConfig } from "@mortise/contracts";
import { createLog } from "@mortise/kernel";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { DockerBackend, type DockerOptions } from "../../dist/backend/docker/backend.js";
import { selectBackend } from "../../dist/select-backend.js";
import { type EngineSettings, OWNER_LABEL } from "../../src/backend/docker/engine.js";
import type { Sandbox, SandboxSpec } from "../../src/backend/types.js";
import { ALLOWED_HOSTS, describeBackend } from "../../src/conformance/index.js";
import { LIMITS, withModel } from "../../src/conformance/kit.js";
import { Authority } from "./certificates.js";
import { RemoteEngine, whyNoEngine } from "./remote-engine.js";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 });
const base = mkdtempSync(path.join(tmpdir(), "mortise-remote-"));
const absent = whyNoEngine();
const engine = absent === undefined ? await RemoteEngine.start() : undefined;
afterAll(async () => {
  await engine?.stop();
  rmSync(base, { recursive: true, force: true });
});

if (engine === undefined)
  describe("the docker backend with an engine elsewhere", () =>
    void test.skip(`not available: ${absent}`, () => undefined));
else
  describeBackend(
    "remote-docker",
    () =>
      new DockerBackend({
        stateDirectory: path.join(base, "kit"),
        engine: engine.settings,
        allowedHosts: ALLOWED_HOSTS,
        warn: (message) => console.log(message),
      }),
    { isolation: true, diskLimit: false, outlivesTimeout: true, images: true, directoryAttributes: false },
  );

describe.skipIf(engine === undefined)("an engine elsewhere", () => {
  const backends: DockerBackend[] = [];
  const said: string[] = [];
  let serial = 0;
  async function started(changes: Partial<DockerOptions> = {}): Promise<DockerBackend> {
    const backend = new DockerBackend({
      stateDirectory: path.join(base, `own-${++serial}`),
      engine: engine!.settings,
      warn: (message) => said.push(message),
      ...changes,
    });
    await backend.start();
    backends.push(backend);
    return backend;
  }
  afterEach(async () => {
    await Promise.all(backends.splice(0).map((backend) => backend.stop()));
    said.length = 0;
  });

  async function sandboxOf(backend: DockerBackend, changes: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    return backend.create({
      id: `remote-${++serial}`,
      image: await backend.prepareImage({ kind: "host" }),
      workspace: await backend.prepareTree({ kind: "files", files: [] }),
      mounts: [],
      limits: LIMITS,
      network: { kind: "none" },
      ...changes,
    });
  }
  const sh = (sandbox: Sandbox, script: string) =>
    sandbox.exec({
      argv: ["sh", "-c", script],
      environment: { PATH: "/usr/bin:/bin" },
      timeoutMs: 30_000,
    });
  const labelled = async () => {
    const filters = { label: [OWNER_LABEL] };
    const { docker } = engine!;
    return {
      containers: (await docker.listContainers({ all: true, filters })).length,
      volumes: ((await docker.listVolumes({ filters })).Volumes ?? []).length,
      images: (await docker.listImages({ filters })).length,
    };
  };
  const helper = async () => {
    const [found] = await engine!.docker.listContainers({ filters: { label: ["io.mortise.helper"] } });
    return engine!.docker.getContainer(found!.Id);
  };

  test("shares no path with this host", async () => {
    const { docker } = engine!;
    const backend = await started();
    await backend.prepareImage({ kind: "host" });
    const [image] = await docker.listImages({ filters: { reference: ["mortise-host"] } });
    const here = path.join(base, "here");
    mkdirSync(here);
    const making = docker.createContainer({
      Image: image!.Id,
      Entrypoint: ["/bin/sh"],
      HostConfig: { Mounts: [{ Type: "bind", Source: here, Target: "/here" }] },
    });
    await expect(making).rejects.toThrow(/bind source path does not exist/);
  });

  test("is brought a directory once, and again when it changed after its use", async () => {
    const backend = await started();
    const runtime = path.join(base, "runtime");
    mkdirSync(runtime, { recursive: true });
    writeFileSync(path.join(runtime, "version"), "1\n");
    const mounts = [{ source: runtime, target: "/opt/runtime" }];
    const read = async (sandbox: Sandbox) =>
      Buffer.from((await sh(sandbox, "cat /opt/runtime/version")).stdout.bytes).toString();
    const [first, second] = [await sandboxOf(backend, { mounts }), await sandboxOf(backend, { mounts })];
    expect([await read(first), await read(second)]).toEqual(["1\n", "1\n"]);
    const { source } = (await engine!.docker.getContainer(await idOf(first)).inspect()).Mounts.map(
      ({ Source }) => ({ source: Source }),
    )[0]!;
    expect(source).not.toContain(runtime);
    await Promise.all([first, second].map((sandbox) => sandbox.destroy()));
    writeFileSync(path.join(runtime, "version"), "2, another\n");
    expect(await read(await sandboxOf(backend, { mounts }))).toBe("2, another\n");
  });
  const idOf = async (sandbox: Sandbox) => {
    const filters = { label: [`io.mortise.sandbox=${sandbox.id}`] };
    return (await engine!.docker.listContainers({ filters }))[0]!.Id;
  };

  test("looks the names of an allow-list up where it is", async () => {
    const backend = await started();
    const asked = (name: string) =>
      sandboxOf(backend, {
        network: { kind: "allow-list", host: "127.0.0.1", port: 9, allowedHosts: [name] },
      });
    await expect(asked("localhost")).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_NETWORK",
      message: expect.stringContaining("localhost (127.0.0.1) is the sandbox itself"),
    });
    await expect(asked("no-such-name.invalid")).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_NETWORK_UNRESOLVED",
      retryAfterMs: undefined,
    });
  });

  test("whose helper is lost loses its sandboxes, and gets another", async () => {
    const backend = await started();
    await withModel(async (model) => {
      const sandbox = await sandboxOf(backend, { network: { kind: "model", ...model } });
      const running = sh(sandbox, "echo up; sleep 600");
      await (await helper()).kill();
      expect((await running).outcome).toMatchObject({ kind: "lost" });
      expect(sandbox.isModelUnreachable).toBe(true);
      await sandbox.destroy();
    });
    expect(said).toEqual([
      expect.stringContaining("what a sandbox writes is not limited on Docker"),
      expect.stringMatching(/helper .* was lost with its sandboxes/),
    ]);
    const next = await sandboxOf(backend);
    expect((await sh(next, "true")).outcome).toEqual({ kind: "exited", code: 0 });
    expect((await next.proveNetwork()).isClosed).toBe(true);
  });

  test("has nothing of a backend that stopped, and a dead one's goes with the next start", async () => {
    const stateDirectory = path.join(base, "left");
    const earlier = new DockerBackend({ stateDirectory, engine: engine!.settings });
    await earlier.start();
    await (await sandboxOf(earlier)).snapshot();
    await sandboxOf(earlier);
    expect(await labelled()).toEqual({ containers: 3, volumes: 1, images: 1 });
    const next = new DockerBackend({ stateDirectory, engine: engine!.settings });
    expect(await next.start()).toMatchObject({ containers: 3 });
    expect(await labelled()).toEqual({ containers: 1, volumes: 1, images: 0 });
    await next.stop();
    expect(await labelled()).toEqual({ containers: 0, volumes: 0, images: 0 });
  });

  describe("is refused", () => {
    const availability = (settings: EngineSettings) =>
      new DockerBackend({ stateDirectory: path.join(base, "refused"), engine: settings }).availability();
    const withTls = (changes: Partial<NonNullable<EngineSettings["tls"]>>) => ({
      ...engine!.settings,
      tls: { ...engine!.settings.tls!, ...changes },
    });
    const other = () => new Authority(mkdtempSync(path.join(base, "authority-")));

    test("when another authority signed its certificate", async () => {
      expect(await availability(withTls({ ca: other().ca }))).toEqual({
        ok: false,
        reason: expect.stringMatching(/sandbox\.docker\.tls\.ca did not sign the engine's certificate/),
      });
    });

    test("when it does not know who signed ours", async () => {
      expect(await availability(withTls(other().pair({})))).toEqual({
        ok: false,
        reason: expect.stringMatching(/the engine does not accept sandbox\.docker\.tls\.cert/),
      });
    });

    test("when ours is for something else than a client", async () => {
      const pair = engine!.authority.pair({ address: "127.0.0.1" });
      expect(await availability(withTls(pair))).toEqual({
        ok: false,
        reason: expect.stringMatching(/the engine does not accept sandbox\.docker\.tls\.cert/),
      });
    });

    test("when ours has expired, before anything is sent", async () => {
      const pair = engine!.authority.pair({ isExpired: true });
      expect(await availability(withTls(pair))).toEqual({
        ok: false,
        reason: expect.stringMatching(/^sandbox\.docker\.tls\.cert: .* expired on Jan +1 00:00:01 2020 GMT/),
      });
    });

    test("when its own has expired, or is for another name", async () => {
      for (const [wish, words] of [
        [{ address: "127.0.0.1", isExpired: true }, "the engine's certificate has expired"],
        [{ address: "192.0.2.1" }, "is not for the name in sandbox.docker.host"],
      ] as const) {
        const { cert, key } = engine!.authority.pair(wish);
        const server = https.createServer({ cert: readFileSync(cert), key: readFileSync(key) });
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
        const { port } = server.address() as AddressInfo;
        const found = await availability({ ...engine!.settings, host: `tcp://127.0.0.1:${port}` });
        expect(found).toEqual({ ok: false, reason: expect.stringContaining(words) });
        server.close();
      }
    });

    test("with files that are not there, are no certificate, or do not belong together", async () => {
      const { ca } = engine!.authority;
      const foreign = other().pair({}).key;
      for (const [changes, words] of [
        [{ ca: "/no/such/ca.pem" }, "sandbox.docker.tls.ca: /no/such/ca.pem: ENOENT"],
        [{ ca: import.meta.filename }, "holds no certificate"],
        [{ ca: engine!.settings.tls!.cert }, "is not the certificate of an authority"],
        [{ key: ca }, "holds no private key that can be read"],
        [{ key: foreign }, "is not the key of"],
      ] as const)
        expect(await availability(withTls(changes))).toEqual({
          ok: false,
          reason: expect.stringContaining(words),
        });
    });

    test("without TLS, unless the site says so; then it is said, and this engine wants TLS", async () => {
      const { host } = engine!.settings;
      expect(await availability({ host: host! })).toEqual({
        ok: false,
        reason: expect.stringMatching(
          /sandbox\.docker\.tls is absent: .* set sandbox\.docker\.allowPlainTcp/,
        ),
      });
      expect(await availability({ host: host!, allowPlainTcp: true })).toEqual({
        ok: false,
        reason: expect.stringContaining("the engine wants TLS"),
      });
    });

    test("with the field in the error a manager ends with", async () => {
      const site = SiteConfig.parse({
        nats: { url: "nats://127.0.0.1:1" },
        identity: { directory: "/identity" },
        state: { directory: "/state" },
        tasks: { directory: "/tasks" },
        sandbox: { backend: "docker", docker: { host: engine!.settings.host } },
      });
      const log = createLog({ service: "test", level: "error" });
      await expect(selectBackend(site.sandbox, path.join(base, "site"), log)).rejects.toMatchObject({
        code: "MORTISE_SANDBOX_BACKEND",
        message: expect.stringContaining("sandbox.docker.tls is absent"),
      });
    });
  });
});

describe.skipIf(engine === undefined)("an engine without TLS", () => {
  test("is used where the site allows it, and that is said at every start", async () => {
    const plain = await RemoteEngine.start({ isPlain: true });
    const said: string[] = [];
    const backend = new DockerBackend({
      stateDirectory: path.join(base, "plain"),
      engine: plain.settings,
      warn: (message) => said.push(message),
    });
    try {
      expect(await backend.availability()).toEqual({ ok: true });
      await backend.start();
      await backend.stop();
      await backend.start();
      const insecure = said.filter((one) => one.startsWith("INSECURE"));
      expect(insecure).toHaveLength(2);
      expect(insecure[1]).toMatch(/without TLS \(sandbox\.docker\.allowPlainTcp\)/);
    } finally {
      await backend.stop().catch(() => undefined);
      await plain.stop();
    }
  });
});
