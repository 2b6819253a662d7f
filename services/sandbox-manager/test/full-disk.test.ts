/**
 * A state directory that is full: what could not be prepared is refused with the place and the reason, nothing half
 * written stays, and the same asked again works once there is space. On small memory file systems; needs root.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { RuncBackend } from "../dist/backend/runc/backend.js";
import { mount, unmount } from "../src/backend/runc/syscalls.js";
import { directory, file } from "../src/conformance/tar-builder.js";
import { gzipLayer, RegistryServer } from "./images/registry-server.js";

const MIB = 1024 * 1024;
const MS_REMOUNT = 32;
const base = mkdtempSync(path.join(tmpdir(), "mortise-full-"));
const availability = await new RuncBackend({ stateDirectory: base, runc: "runc" }).availability();
if (!availability.ok) console.log(`a full disk is not tried: ${availability.reason}`);
afterAll(() => rmSync(base, { recursive: true, force: true }));

describe.skipIf(!availability.ok)("on a full disk", () => {
  let stateDirectory: string;
  let backend: RuncBackend;
  let serial = 0;

  beforeEach(async () => {
    stateDirectory = path.join(base, `${++serial}`);
    mkdirSync(stateDirectory);
    mount("small", stateDirectory, "tmpfs", 0, `size=${4 * MIB}`);
    backend = new RuncBackend({ stateDirectory, runc: "runc" });
    await backend.start();
  });
  afterEach(async () => {
    await backend.stop();
    unmount(stateDirectory);
  });

  const enlarge = (bytes: number) => mount("small", stateDirectory, "tmpfs", MS_REMOUNT, `size=${bytes}`);
  const below = (...parts: string[]) => readdirSync(path.join(stateDirectory, ...parts));
  const noSpace = {
    code: "MORTISE_SANDBOX_NO_SPACE",
    disposition: "retry",
    message: expect.stringMatching(/ENOSPC.*\d+ MiB and \d+ inodes are free/),
  };

  test("an image of a registry leaves no layer half unpacked, and is there when there is space", async () => {
    const registry = await new RegistryServer().start();
    const layers = [1, 2, 3].map((n) =>
      gzipLayer([directory(`d${n}`), file(`d${n}/large`, `${n}`.repeat(2 * MIB)), file(`d${n}/small`, "x")]),
    );
    registry.putImage("team/large", layers, { tag: "1" });
    const spec = { kind: "registry", reference: `${registry.host}/team/large:1` } as const;
    for (const _ of [1, 2]) await expect(backend.prepareImage(spec)).rejects.toMatchObject(noSpace);
    expect(below("store/layers").filter((name) => name.startsWith("unfinished"))).toEqual([]);
    expect(below("store/images")).toEqual([]);
    enlarge(64 * MIB);
    const image = await backend.prepareImage(spec);
    expect((await backend.readTree(image, "/d3")).entries.get("large")).toMatchObject({ kind: "file" });
    await registry.stop();
  });

  test("programs of this host leave nothing, and are there when there is space", async () => {
    await expect(backend.prepareImage({ kind: "host" })).rejects.toMatchObject(noSpace);
    expect(below("images")).toEqual([]);
    enlarge(512 * MIB);
    expect((await backend.prepareImage({ kind: "host" })).digest).toMatch(/^[0-9a-f]{64}$/);
  });

  test("a task's files leave nothing, and are there when there is space", async () => {
    const source = path.join(base, `files-${serial}`);
    mkdirSync(source);
    for (let n = 0; n < 6; n++) writeFileSync(path.join(source, `${n}`), Buffer.alloc(MIB, `${n}`));
    const tree = { kind: "directory", directory: source } as const;
    await expect(backend.prepareTree(tree)).rejects.toMatchObject(noSpace);
    expect(below("trees")).toEqual([]);
    enlarge(64 * MIB);
    expect((await backend.prepareTree(tree)).entries.size).toBe(6);
  });
});
