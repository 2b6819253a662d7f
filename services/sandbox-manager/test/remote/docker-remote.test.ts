/**
 * The docker backend with an engine that is elsewhere: the conformance kit over TLS, what becomes of sandboxes whose
 * helper is lost, and what is refused before anything is sent.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, test, vi } from "vitest";
import { DockerBackend } from "../../dist/backend/docker/backend.js";
import { ALLOWED_HOSTS, describeBackend } from "../../src/conformance/index.js";
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
