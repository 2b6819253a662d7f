/** What only the runc backend promises: a flat host, images of many layers, and a sweep after SIGKILL. */
import { type ChildProcess, fork } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RuncBackend } from "../dist/backend/runc/backend.js";
import { CgroupHost } from "../src/backend/runc/cgroup.js";
import { cgroupParent } from "../src/backend/runc/sweep.js";
import type { SandboxSpec } from "../src/backend/types.js";
import { SMALL_LAYERS, savedImage } from "../src/conformance/saved-image.js";
import { directory, file } from "../src/conformance/tar-builder.js";
import { gzipLayer, RegistryServer } from "./images/registry-server.js";

const MIB = 1024 * 1024;
const base = mkdtempSync(path.join(tmpdir(), "mortise-runc-"));
const availability = await new RuncBackend({ stateDirectory: base, runc: "runc" }).availability();
if (!availability.ok) console.log(`runc tests skipped: ${availability.reason}`);
afterAll(() => rmSync(base, { recursive: true, force: true }));

const mountsBelow = (directory: string) =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(directory));

describe.skipIf(!availability.ok)("runc on this host", () => {
  const stateDirectory = path.join(base, "state");
  const backend = new RuncBackend({ stateDirectory, runc: "runc" });
  let shared: Omit<SandboxSpec, "id">;

  beforeAll(async () => {
    await backend.start();
    shared = {
      image: await backend.prepareImage({ kind: "host" }),
      workspace: await backend.prepareTree({ kind: "files", files: [] }),
      mounts: [],
      limits: { cpus: 1, memoryBytes: 192 * MIB, pids: 64, diskBytes: 16 * MIB, outputBytes: 65_536 },
      network: { kind: "none" },
    };
  });
  afterAll(() => backend.stop());

  /** A network namespace has no life beside a descriptor, a mount or a process in a group. */
  const count = () => ({
    descriptors: openDescriptors(),
    mounts: mountsBelow(stateDirectory).length,
    groups: CgroupHost.detect()!.children(cgroupParent(stateDirectory)).length,
    directories: readdirSync(path.join(stateDirectory, "run")).length,
  });

  test("fifty sandboxes leave descriptors, mounts and control groups as they were", async () => {
    const once = async (id: string) => {
      const sandbox = await backend.create({
        ...shared,
        id,
        network: { kind: "model", host: "127.0.0.1", port: 9 },
      });
      const result = await sandbox.exec({
        argv: ["true"],
        environment: { PATH: "/usr/bin" },
        timeoutMs: 20_000,
      });
      await sandbox.destroy();
      return result.outcome;
    };
    await once("first");
    const before = count();
    for (let n = 0; n < 50; n++) expect(await once(`churn-${n}`)).toEqual({ kind: "exited", code: 0 });
    expect(count()).toEqual(before);
  });

  test("a snapshot and what was made from it leave nothing when all of it is gone", async () => {
    const before = count();
    const template = await backend.create({ ...shared, id: "template" });
    const snapshot = await template.snapshot();
    await template.destroy();
    const forks = [
      await backend.create({ ...shared, id: "fork-1", image: snapshot }),
      await backend.create({ ...shared, id: "fork-2", image: snapshot }),
    ];
    await snapshot.release();
    await forks[0]!.destroy();
    expect(count().mounts).toBeGreaterThan(before.mounts);
    await forks[1]!.destroy();
    expect(count()).toEqual(before);
  });

  test("a sandbox that cannot be set up leaves nothing", async () => {
    const before = count();
    const path = await savedImage(SMALL_LAYERS);
    const image = await backend.prepareImage({ kind: "local", path });
    const wrong = { ...shared, id: "wrong", image, workdir: "/srv/alias/deep" };
    await expect(backend.create(wrong)).rejects.toThrow(/link or file at \/srv\/alias/);
    expect(count()).toEqual({ ...before, descriptors: openDescriptors() });
    rmSync(path);
  });

  test("an image of a registry, with more layers than mount options have room for by name", async () => {
    const registry = await new RegistryServer().start();
    const layers = Array.from({ length: 127 }, (_, at) =>
      gzipLayer([directory("many"), file(`many/${at}`, `${at}\n`), file("last", `${at}\n`)]),
    );
    registry.putImage("team/many", layers, { tag: "1" });
    const image = await backend.prepareImage({
      kind: "registry",
      reference: `${registry.host}/team/many:1`,
    });
    await registry.stop();
    expect(image.defaults).toEqual({ environment: { A: "b" }, workdir: "/srv" });
    const tree = await backend.readTree(image, "/many");
    expect(tree.entries.size).toBe(127);
    const sandbox = await backend.create({
      ...shared,
      id: "many",
      image,
      workspace: tree,
      workdir: "/many",
    });
    expect(readdirSync(`${sandbox.hostRoot}/many`)).toHaveLength(127);
    expect(readFileSync(`${sandbox.hostRoot}/last`, "utf8")).toBe("126\n");
    await sandbox.destroy();
  });

  test("a second manager is refused the state directory of a live one", async () => {
    const child = fork(path.join(import.meta.dirname, "second-manager.ts"), [stateDirectory], {
      silent: true,
    });
    const [message] = await once(child, "message");
    expect(message).toMatchObject({ code: "MORTISE_SANDBOX_STATE_IN_USE" });
    child.kill();
  });
});

describe.skipIf(!availability.ok)("after SIGKILL of the manager", () => {
  test("the next start leaves no process, mount, control group or directory", async () => {
    const stateDirectory = path.join(base, "killed");
    const child = fork(path.join(import.meta.dirname, "second-manager.ts"), [stateDirectory, "run"], {
      silent: true,
    });
    const [message] = await once(child, "message");
    expect(message).toEqual({ outcome: "running" });
    const marker = realpathSync(stateDirectory);
    expect(mountsBelow(marker).length).toBeGreaterThan(2);
    child.kill("SIGKILL");
    await once(child, "exit");

    const backend = new RuncBackend({ stateDirectory, runc: "runc" });
    const report = await backend.start();
    expect(report).toMatchObject({ containers: 1, cgroups: 1, directories: 1 });
    expect(report.processes).toBeGreaterThan(0);
    expect(CgroupHost.detect()!.children(cgroupParent(stateDirectory))).toEqual([]);
    // The run directory of the new owner is the only mount.
    expect(mountsBelow(marker)).toHaveLength(1);
    await backend.stop();
    expect(mountsBelow(marker)).toEqual([]);
    expect(existsSync(path.join(stateDirectory, "run"))).toBe(false);
    expect((await backend.start()).containers).toBe(0);
    await backend.stop();
  });
});

function once(child: ChildProcess, event: string): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stderr?.on("data", (chunk) => (text += chunk));
    child.once(event, (...parameters) => resolve(parameters));
    if (event !== "exit")
      child.once("exit", (code) => reject(new Error(`manager ended with ${code}: ${text}`)));
  });
}

function openDescriptors(): number {
  return readdirSync("/proc/self/fd").length;
}
