import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, test, vi } from "vitest";
import { DockerBackend } from "../dist/backend/docker/backend.js";
import { ProcessBackend } from "../dist/backend/process/backend.js";
import { RuncBackend } from "../dist/backend/runc/backend.js";
import type { SandboxBackend } from "../src/backend/types.js";
import { ALLOWED_HOSTS, type Confines, describeBackend } from "../src/conformance/index.js";

const state = mkdtempSync(path.join(tmpdir(), "mortise-backends-"));
afterAll(() => rmSync(state, { recursive: true, force: true }));

// Sandboxes of Docker take their time, on a busy machine above all.
vi.setConfig({ testTimeout: 30_000 });
const directory = (name: string) => path.join(state, name);
const socketPath = process.env.MORTISE_TEST_DOCKER_SOCKET;
const candidates: [string, () => SandboxBackend, Confines][] = [
  [
    "runc",
    () => new RuncBackend({ stateDirectory: directory("runc"), runc: "runc", allowedHosts: ALLOWED_HOSTS }),
    { isolation: true, diskLimit: true, outlivesTimeout: true, images: true, directoryAttributes: true },
  ],
  [
    "docker",
    () =>
      new DockerBackend({
        stateDirectory: directory("docker"),
        allowedHosts: ALLOWED_HOSTS,
        ...(socketPath ? { engine: { host: `unix://${socketPath}` } } : {}),
      }),
    { isolation: true, diskLimit: false, outlivesTimeout: true, images: true, directoryAttributes: false },
  ],
  [
    "process",
    () => new ProcessBackend({ stateDirectory: directory("process"), warn: () => undefined }),
    { isolation: false, diskLimit: false, outlivesTimeout: true, images: false, directoryAttributes: false },
  ],
];

for (const [name, make, confines] of candidates) {
  const available = await make().availability();
  if (available.ok) describeBackend(name, make, confines);
  else
    describe(`${name} backend`, () => void test.skip(`not available: ${available.reason}`, () => undefined));
}
