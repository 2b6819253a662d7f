/** What only the docker backend does: images through the engine, commands ended inside a container that goes on, sweep. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { DockerBackend } from "../dist/backend/docker/backend.js";
import { engineAddress } from "../src/backend/docker/engine.js";
import type { Command, Sandbox, SandboxSpec } from "../src/backend/types.js";
import { digestOf, directory, file } from "../src/conformance/tar-builder.js";
import { gzipLayer, RegistryServer } from "./images/registry-server.js";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
const MIB = 1024 * 1024;
const base = mkdtempSync(path.join(tmpdir(), "mortise-docker-"));
const socketPath = process.env.MORTISE_TEST_DOCKER_SOCKET;
const optional = socketPath === undefined ? {} : { engine: { host: `unix://${socketPath}` } };
const availability = await new DockerBackend({ stateDirectory: base, ...optional }).availability();
if (!availability.ok) console.log(`docker tests skipped: ${availability.reason}`);
afterAll(() => rmSync(base, { recursive: true, force: true }));

const ENGINE = socketPath === undefined ? [] : ["-H", `unix://${socketPath}`];
function docker(...argv: string[]): string {
  return execFileSync("docker", [...ENGINE, ...argv], { encoding: "utf8" }).trim();
}

describe("which engine", () => {
  test("one elsewhere is the site's to name, not the environment's", () => {
    expect(engineAddress({}, { DOCKER_HOST: "tcp://10.0.0.1:2375" })).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/^DOCKER_HOST is tcp:\/\/10\.0\.0\.1:2375: .*sandbox\.docker\.host/),
    });
    expect(engineAddress({}, { DOCKER_HOST: "tcp://10.0.0.1:2376", DOCKER_TLS_VERIFY: "1" })).toMatchObject({
      ok: false,
      reason: expect.stringContaining("tcp://10.0.0.1:2376"),
    });
    expect(engineAddress({}, { DOCKER_HOST: "unix:///run/other.sock" })).toEqual({
      ok: true,
      kind: "local",
      socketPath: "/run/other.sock",
    });
    const mine = engineAddress({ host: "unix:///run/mine.sock" }, { DOCKER_HOST: "tcp://10.0.0.1:2375" });
    expect(mine).toEqual({ ok: true, kind: "local", socketPath: "/run/mine.sock" });
  });
});

describe.skipIf(!availability.ok)("commands in a container", () => {
  const backend = new DockerBackend({ stateDirectory: path.join(base, "commands"), ...optional });
  let shared: Omit<SandboxSpec, "id">;
  let serial = 0;
  const open: Sandbox[] = [];

  beforeAll(async () => {
    await backend.start();
    shared = {
      image: await backend.prepareImage({ kind: "host" }),
      workspace: await backend.prepareTree({ kind: "files", files: [] }),
      mounts: [],
      limits: { cpus: 1, memoryBytes: 192 * MIB, pids: 48, diskBytes: 16 * MIB, outputBytes: 4096 },
      network: { kind: "none" },
    };
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((sandbox) => sandbox.destroy()));
  });
  afterAll(() => backend.stop());

  async function create(): Promise<Sandbox> {
    const sandbox = await backend.create({ ...shared, id: `docker-host-${++serial}` });
    open.push(sandbox);
    return sandbox;
  }
  const sh = (sandbox: Sandbox, script: string, changes: Partial<Command> = {}) =>
    sandbox.exec({
      argv: ["sh", "-c", script],
      environment: { PATH: "/usr/bin:/bin" },
      timeoutMs: 30_000,
      ...changes,
    });

  test("a daemon that holds its output does not hold the command, and ends with it", async () => {
    const sandbox = await create();
    const result = await sh(sandbox, "(while :; do echo tick >> ticks; sleep 0.05; done) & echo done");
    expect(result.outcome).toEqual({ kind: "exited", code: 0 });
    const count = async () => Buffer.from((await sh(sandbox, "wc -l < ticks")).stdout.bytes).toString();
    expect(await count()).toBe(await count());
  });

  test.each(["agent", "root"] as const)("%s can kill everything but the sandbox", async (user) => {
    const sandbox = await create();
    await sh(sandbox, "kill -9 -1", { user });
    expect((await sh(sandbox, "exit 7")).outcome).toEqual({ kind: "exited", code: 7 });
    expect((await sandbox.proveNetwork()).isClosed).toBe(true);
  });

  test("of two commands, one that takes too long does not end the other", async () => {
    const sandbox = await create();
    const other = sh(sandbox, "sleep 4; echo whole");
    const late = await sh(sandbox, "sleep 600", { timeoutMs: 2_000 });
    expect(late.outcome).toEqual({ kind: "timeout" });
    const { outcome, stdout } = await other;
    expect([outcome, Buffer.from(stdout.bytes).toString()]).toEqual([{ kind: "exited", code: 0 }, "whole\n"]);
  });

  test("words of the engine, said by a command, are a result", async () => {
    const result = await sh(await create(), "echo OCI runtime exec failed >&2; exit 127");
    expect(result.outcome).toEqual({ kind: "exited", code: 127 });
  });

  test("what an earlier owner left is removed, and nothing of another owner", async () => {
    const stateDirectory = path.join(base, "left");
    const earlier = new DockerBackend({ stateDirectory, ...optional });
    await earlier.start();
    const image = await earlier.prepareImage({ kind: "host" });
    const workspace = await earlier.prepareTree({ kind: "files", files: [] });
    const template = await earlier.create({ ...shared, image, workspace, id: "template" });
    const snapshot = await template.snapshot();
    await earlier.create({ ...shared, image: snapshot, workspace, id: "fork" });
    const mine = await create();

    const next = new DockerBackend({ stateDirectory, ...optional });
    expect(await next.start()).toMatchObject({ containers: 2, directories: 2 });
    expect(docker("images", "-q", "--no-trunc")).not.toContain(snapshot.digest);
    expect((await sh(mine, "true")).outcome).toEqual({ kind: "exited", code: 0 });
    expect(await next.start()).toMatchObject({ containers: 0, directories: 0 });
    await next.stop();
  });
});

describe.skipIf(!availability.ok)("images through the engine", () => {
  const dockerConfig = path.join(base, "config.json");
  const backend = new DockerBackend({ stateDirectory: path.join(base, "images"), dockerConfig, ...optional });
  const layer = gzipLayer([directory("srv"), file("srv/here", "here\n")]);
  const pulled: string[] = [];
  let registry: RegistryServer;

  beforeAll(async () => {
    await backend.start();
    registry = await new RegistryServer().start();
  });
  beforeEach(() => {
    registry.login = undefined;
    registry.asked.length = 0;
    rmSync(dockerConfig, { force: true });
  });
  afterAll(async () => {
    await registry.stop();
    await backend.stop();
    // One image may have several of these names: the last of them goes with the others.
    for (const name of pulled) spawnSync("docker", [...ENGINE, "rmi", "-f", name], { stdio: "ignore" });
  });
  const pull = (name: string) => {
    const reference = `${registry.host}/${name}`;
    return backend.prepareImage({ kind: "registry", reference }).then((image) => {
      pulled.push(reference);
      return image;
    });
  };
  const tool = gzipLayer([directory("opt"), file("opt/tool", "tool")]);

  test("one of a registry is pulled, named by its digest and read as a tree", async () => {
    const digest = registry.putImage("team/app", [layer], { tag: "1" });
    const image = await pull("team/app:1");
    expect(image).toEqual({
      digest: digest.slice("sha256:".length),
      kind: "registry",
      defaults: { environment: { A: "b" }, workdir: "/srv" },
    });
    const tree = await backend.readTree(image, "/srv");
    expect([...tree.entries.keys()]).toEqual(["here"]);
  });

  test("one named by a digest is not asked for again, one by a tag is", async () => {
    const digest = registry.putImage("team/again", [tool], { tag: "1" });
    const first = await pull(`team/again@${digest}`);
    registry.asked.length = 0;
    expect(await pull(`team/again@${digest}`)).toEqual(first);
    expect(registry.asked).toEqual([]);
    await pull("team/again:1");
    expect(registry.asked).not.toEqual([]);
  });

  test("the registry's login comes from the file", async () => {
    registry.putImage("team/closed", [layer], { tag: "1" });
    registry.login = { kind: "basic", value: "user:secret" };
    await expect(pull("team/closed:1")).rejects.toMatchObject({ code: "MORTISE_SANDBOX_IMAGE_DENIED" });
    const auth = Buffer.from("user:secret").toString("base64");
    writeFileSync(dockerConfig, JSON.stringify({ auths: { [registry.host]: { auth } } }));
    await expect(pull("team/closed:1")).resolves.toMatchObject({ kind: "registry" });
  });

  test("one that is not there is told from a registry that is not", async () => {
    await expect(pull("team/none:1")).rejects.toMatchObject({ code: "MORTISE_SANDBOX_IMAGE_UNKNOWN" });
    const elsewhere = backend.prepareImage({ kind: "registry", reference: "127.0.0.1:1/team/app:1" });
    await expect(elsewhere).rejects.toMatchObject({ code: "MORTISE_SANDBOX_IMAGE_REGISTRY" });
  });

  test("an OCI layout is loaded", async () => {
    const { layout, digest } = layoutOf("layout", { WorkingDir: "/srv" });
    const image = await backend.prepareImage({ kind: "local", path: layout });
    pulled.push(`mortise-local:${image.digest.slice(0, 16)}`);
    expect(image.digest).toBe(digest.slice("sha256:".length));
    expect(await backend.prepareImage({ kind: "local", path: layout })).toEqual(image);
    expect([...(await backend.readTree(image, "/srv")).entries.keys()]).toEqual(["here"]);
  });

  test("one that declares volumes is refused: they would lie outside its root", async () => {
    const { layout, digest } = layoutOf("volumes", { Volumes: { "/srv": {} } });
    pulled.push(`mortise-local:${digest.slice("sha256:".length).slice(0, 16)}`);
    await expect(backend.prepareImage({ kind: "local", path: layout })).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_IMAGE_INVALID",
      message: expect.stringContaining("/srv"),
    });
  });

  /** A layout with one layer and this configuration. */
  function layoutOf(name: string, settings: object): { layout: string; digest: string } {
    const layout = path.join(base, name);
    mkdirSync(path.join(layout, "blobs/sha256"), { recursive: true });
    const put = (bytes: Buffer, mediaType: string) => {
      const digest = digestOf(bytes);
      writeFileSync(path.join(layout, "blobs/sha256", digest.slice(7)), bytes);
      return { mediaType, digest, size: bytes.byteLength };
    };
    const config = {
      os: "linux",
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      config: settings,
      rootfs: { type: "layers", diff_ids: [layer.diffId] },
    };
    const manifest = put(
      Buffer.from(
        JSON.stringify({
          schemaVersion: 2,
          config: put(Buffer.from(JSON.stringify(config)), "application/vnd.oci.image.config.v1+json"),
          layers: [put(layer.blob, layer.mediaType)],
        }),
      ),
      "application/vnd.oci.image.manifest.v1+json",
    );
    writeFileSync(
      path.join(layout, "index.json"),
      JSON.stringify({ schemaVersion: 2, manifests: [manifest] }),
    );
    return { layout, digest: manifest.digest };
  }

  test("one without a shell makes no sandbox, and says why", async () => {
    registry.putImage("team/bare", [tool], { tag: "1" });
    const making = backend.create({
      id: "bare",
      image: await pull("team/bare:1"),
      workspace: await backend.prepareTree({ kind: "files", files: [] }),
      mounts: [],
      limits: { cpus: 1, memoryBytes: 64 * MIB, pids: 16, diskBytes: MIB, outputBytes: 4096 },
      network: { kind: "none" },
    });
    await expect(making).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_SETUP",
      message: expect.stringContaining("/bin/sh"),
    });
    expect(docker("ps", "-aq", "--filter", "label=io.mortise.sandbox=bare")).toBe("");
  });
});
