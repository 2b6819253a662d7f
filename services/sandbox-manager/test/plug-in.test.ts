/**
 * Backends of others: the example of docs/sandboxes.md in a directory of its own outside the workspace, as whoever
 * writes one has it. It passes the conformance kit there, runs a trial of a real manager, and what is wrong with one
 * is said by name.
 */
import { spawnSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { SiteConfig, TerminationReason } from "@mortise/contracts";
import { createLog } from "@mortise/kernel";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadPlugIn } from "../dist/backend/plug-in.js";
import { selectBackend } from "../dist/select-backend.js";
import { ManagerWorld } from "./manager-world.js";

const PAGE = path.join(import.meta.dirname, "../../../docs/sandboxes.md");
const base = realpathSync(mkdtempSync(path.join(tmpdir(), "mortise-plug-in-")));
afterAll(() => rmSync(base, { recursive: true, force: true }));

/** The block of the page that begins with this file's name. */
function fromPage(name: string): string {
  const blocks = [...readFileSync(PAGE, "utf8").matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(
    ([, code]) => code!,
  );
  const found = blocks.find((code) => code.startsWith(`// ${name}`));
  if (found === undefined) throw new Error(`${PAGE} has no block of ${name}`);
  writeFileSync(path.join(base, name), found);
  return path.join(base, name);
}

/** As an installation leaves it. */
function installed(name: string, directory: string): void {
  const target = path.join(base, "node_modules", name);
  mkdirSync(path.dirname(target), { recursive: true });
  symlinkSync(realpathSync(directory), target);
}

let example: string;
const audit = path.join(base, "audit.log");
beforeAll(() => {
  installed("@mortise/sandbox-manager", path.join(import.meta.dirname, ".."));
  installed("vitest", path.dirname(createRequire(import.meta.url).resolve("vitest/package.json")));
  example = fromPage("backend.mjs");
});

describe("a backend of others", () => {
  test("passes the conformance kit where it is written", { timeout: 300_000 }, () => {
    fromPage("backend.test.mjs");
    const vitest = path.join(base, "node_modules/vitest/vitest.mjs");
    const argv = [vitest, "run", "--root", base, "--reporter=json", "--outputFile=result.json"];
    const ran = spawnSync(process.execPath, argv, { cwd: base, encoding: "utf8" });
    const result = JSON.parse(readFileSync(path.join(base, "result.json"), "utf8"));
    expect([ran.status, result.numFailedTests], ran.stdout + ran.stderr).toEqual([0, 0]);
    expect(result.numPassedTests).toBeGreaterThan(20);
  });

  test("runs the trials of a manager whose site names it", { timeout: 120_000 }, async () => {
    const world = await ManagerWorld.start({
      directory: path.join(base, "manager"),
      backend: "audited",
      sandbox: `[sandbox.plugins.audited]\nmodule = "${example}"\noptions = { file = "${audit}" }`,
    });
    try {
      const { trial } = await world.started();
      expect((await world.ended(trial)).termination).toBe(TerminationReason.COMPLETED);
      expect(readFileSync(audit, "utf8")).toContain(trial);
      const [report] = world.reportsOf(trial);
      expect(report).toMatchObject({ backend: "audited", insecure: true });
      expect(world.manager.output).toContain("runs as code of this process");
    } finally {
      await world.stop();
    }
  });
});

describe("a plug-in that is wrong", () => {
  const context = {
    name: "mine",
    stateDirectory: path.join(base, "state"),
    options: {},
    warn: () => undefined,
  };
  let serial = 0;
  const load = (code: string, limitMs?: number) => {
    const module = path.join(base, `wrong-${++serial}.mjs`);
    writeFileSync(module, code);
    return loadPlugIn(module, context, limitMs);
  };
  const methods = (...names: string[]) => names.map((name) => `async ${name}() { return {}; }`).join(", ");
  const COMPLETE = methods(
    "availability",
    "start",
    "prepareImage",
    "prepareTree",
    "readTree",
    "create",
    "stop",
  );

  test("that is not there", async () => {
    await expect(loadPlugIn("/no/such/backend.mjs", context)).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_BACKEND",
      message: expect.stringMatching(
        /sandbox\.plugins\.mine\.module: \/no\/such\/backend\.mjs: there is no such file/,
      ),
    });
  });

  test.each([
    ["cannot be read", "export const = ;", /it cannot be loaded/],
    ["imports what is not there", 'import "no-such-package";', /it cannot be loaded: .*no-such-package/],
    [
      "has no version",
      "export const createBackend = () => ({});",
      /speaks version undefined of the interface/,
    ],
    [
      "has another version",
      "export const interfaceVersion = 2;",
      /speaks version 2 .* this Mortise version 1/,
    ],
    ["has no factory", "export const interfaceVersion = 1;", /exports no function createBackend/],
    [
      "fails",
      'export const interfaceVersion = 1; export function createBackend() { throw new Error("no region"); }',
      /createBackend failed: no region/,
    ],
    [
      "lacks methods",
      `export const interfaceVersion = 1;
       export const createBackend = ({ name }) => ({ name, isInsecure: false, ${methods("start", "create")} });`,
      /has no availability, prepareImage, prepareTree, readTree, stop/,
    ],
    [
      "does not say whether it isolates",
      `export const interfaceVersion = 1; export const createBackend = ({ name }) => ({ name, ${COMPLETE} });`,
      /has no isInsecure/,
    ],
    [
      "has a name of its own",
      `export const interfaceVersion = 1;
       export const createBackend = () => ({ name: "runc", isInsecure: false, ${COMPLETE} });`,
      /calls itself "runc" and the site calls it "mine"/,
    ],
    [
      "throws what is no error",
      "export const interfaceVersion = 1; export function createBackend() { throw null; }",
      /createBackend failed: null/,
    ],
    ["throws such a thing while it is loaded", "throw undefined;", /it cannot be loaded: undefined/],
  ])("one that %s is refused", async (_, code, why) => {
    await expect(load(code)).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_BACKEND",
      message: expect.stringMatching(why),
    });
  });

  test.each([
    ["loading", "await new Promise(() => {});", /it cannot be loaded: it has not ended after 20 ms/],
    [
      "its factory",
      "export const interfaceVersion = 1; export const createBackend = () => new Promise(() => {});",
      /it has not ended after 1000 ms/,
    ],
  ])("one that never ends %s is refused", { timeout: 60_000 }, async (_, code, why) => {
    await expect(load(code, code.startsWith("await") ? 20 : 1_000)).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_BACKEND",
      message: expect.stringMatching(why),
    });
  });

  test("one whose sandboxes lack methods is refused with the first of them, which goes", async () => {
    const backend = await load(`export const interfaceVersion = 1;
      export const createBackend = ({ name }) => ({ name, isInsecure: false, ${COMPLETE},
        async create() { return { id: "x", async exec() {}, async destroy() { globalThis.mortiseTestGone = true; } }; } });`);
    await expect(backend.create({} as never)).rejects.toThrow(
      /its sandboxes have no putTar, getTar, quiesce/,
    );
    expect((globalThis as { mortiseTestGone?: boolean }).mortiseTestGone).toBe(true);
  });
});

describe("the name of a backend", () => {
  const site = (sandbox: object) =>
    SiteConfig.safeParse({
      nats: { url: "nats://127.0.0.1:1" },
      identity: { directory: "/identity" },
      state: { directory: "/state" },
      tasks: { directory: "/tasks" },
      sandbox,
    });
  const problems = (sandbox: object) =>
    site(sandbox).error?.issues.map(({ path: at, message }) => `${at.join(".")}: ${message}`) ?? [];
  const plugins = (name: string) => ({ plugins: { [name]: { module: "/opt/backend.mjs" } } });

  test("is one of ours or of a plug-in", () => {
    expect(problems({ backend: "runc" })).toEqual([]);
    expect(problems({ backend: "mine", ...plugins("mine") })).toEqual([]);
    expect(problems({ backend: "mine" })).toEqual([
      expect.stringMatching(
        /^sandbox\.backend: "mine" is none of auto, runc, .*add \[sandbox\.plugins\.mine\]/,
      ),
    ]);
  });

  test("belongs to one only", () => {
    expect(problems(plugins("docker"))).toEqual([
      expect.stringMatching(/^sandbox\.plugins\.docker: is the name of a backend of Mortise/),
    ]);
  });

  test("of a plug-in says where its module is, absolutely", () => {
    expect(problems({ plugins: { mine: { module: "backend.mjs" } } })).toEqual([
      "sandbox.plugins.mine.module: must be an absolute path",
    ]);
  });

  test("selects it, and what it cannot do on this host is the reason given", async () => {
    const parsed = site({
      backend: "audited",
      plugins: { audited: { module: example, options: {} } },
    }).data!;
    const log = createLog({ service: "test", level: "error" });
    await expect(selectBackend(parsed.sandbox, path.join(base, "selected"), log)).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_BACKEND",
      message: expect.stringContaining("audited: options.file is missing"),
    });
  });
});
