/** The conformance kit over pods of a real cluster, as an account with the rights of the project's own manifest. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, inject, test } from "vitest";
import { seccompProfile } from "../../services/sandbox-manager/dist/backend/runc/seccomp.js";
import { describeBackend } from "../../services/sandbox-manager/dist/conformance/index.js";
import { RegistryServer } from "../../services/sandbox-manager/test/images/registry-server.js";
import { PushingBackend } from "./pushed-images.js";
import { settingsOf } from "./settings.js";

const setup = inject("kubernetes");
const { absent, seccompDirectory } = setup;
const state = mkdtempSync(path.join(tmpdir(), "mortise-kubernetes-state-"));
afterAll(() => rmSync(state, { recursive: true, force: true }));

if (absent !== undefined)
  describe("kubernetes backend", () => void test.skip(`not available: ${absent}`, () => undefined));
else {
  writeFileSync(path.join(seccompDirectory!, "sandbox.json"), JSON.stringify(seccompProfile(process.arch)));
  const settings = settingsOf(setup, { seccomp: "sandbox.json" });
  const registry = await new RegistryServer().start();
  afterAll(() => registry.stop());
  describeBackend("kubernetes", () => new PushingBackend({ stateDirectory: state, settings }, registry), {
    isolation: true,
    diskLimit: false,
    outlivesTimeout: true,
    images: true,
    directoryAttributes: true,
    rootAttributes: false,
    snapshots: false,
    allowLists: false,
    pidsReserve: false,
    leaves: [
      "read /proc/kpagecount: succeeded",
      "/proc/pressure/cpu",
      "/proc/pressure/io",
      "/proc/pressure/memory",
    ],
  });
}
