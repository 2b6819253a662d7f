/** The bootstrap script is what a new user meets first: each way it can fail must say what to do. */
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ERROR_CATALOGUE } from "../../packages/contracts/src/errors/catalogue.js";

const scripts = dirname(import.meta.dirname);
const root = dirname(scripts);
let clone: string;

beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), "mortise-bootstrap-"));
  for (const part of ["package.json", "pnpm-lock.yaml", "pnpm-workspace.yaml", "scripts"]) {
    cpSync(join(root, part), join(clone, part), { recursive: true });
  }
});
afterEach(() => rmSync(clone, { recursive: true, force: true }));

function bootstrap(args: string[], options: { node?: string[]; environment?: NodeJS.ProcessEnv } = {}) {
  const script = join(clone, "scripts", "bootstrap.mjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [...(options.node ?? []), script, ...args], {
    encoding: "utf8",
    env: { ...process.env, ...options.environment },
  });
  return { code: status, stdout, stderr };
}

/** Runs before the script and makes this Node say that it is another one. */
function pretendNode(version: string): string[] {
  const source = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } });`;
  return ["--import", `data:text/javascript,${encodeURIComponent(source)}`];
}

describe("the bootstrap script", () => {
  test("tells an old Node before anything else, with exit code 2", () => {
    const { code, stderr } = bootstrap(["quickstart"], { node: pretendNode("18.20.0") });
    expect(code).toBe(2);
    expect(stderr).toContain("MORTISE_OPERATOR_NODE_TOO_OLD (node): Node 18.20.0");
    expect(stderr).toContain("fix: install Node 20");
  });
  test("refuses an unknown command, as one JSON object when asked", () => {
    const { code, stdout } = bootstrap(["quikstart", "--json"]);
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      schema: 1,
      error: { code: "MORTISE_OPERATOR_USAGE", field: "command" },
    });
  });
  test("names an unreachable registry, and leaves no mark of a complete install", {
    timeout: 120_000,
  }, () => {
    const nowhere = "http://127.0.0.1:1/";
    const environment = {
      npm_config_registry: nowhere,
      npm_config_cache: join(clone, "npm-cache"),
      COREPACK_NPM_REGISTRY: nowhere,
      COREPACK_HOME: join(clone, "corepack"),
    };
    const { code, stdout, stderr } = bootstrap(["prepare", "--json"], { environment });
    expect(stderr).toContain("MORTISE_OPERATOR_REGISTRY_UNREACHABLE (registry)");
    expect(JSON.parse(stdout).error.code).toBe("MORTISE_OPERATOR_REGISTRY_UNREACHABLE");
    expect(code).toBe(2);
    expect(existsSync(join(clone, "node_modules", ".mortise-install"))).toBe(false);
  });
  test("uses only codes of the error catalogue", () => {
    const files = readdirSync(scripts, { recursive: true, encoding: "utf8" }).filter((file) =>
      file.endsWith(".mjs"),
    );
    const codes = files.flatMap(
      (file) => readFileSync(join(scripts, file), "utf8").match(/MORTISE_OPERATOR_\w+/g) ?? [],
    );
    expect(codes.length).toBeGreaterThan(5);
    expect([...new Set(codes)].filter((code) => !Object.hasOwn(ERROR_CATALOGUE, code))).toEqual([]);
  });
});

describe("a command in the foreground", () => {
  test("is passed the signals of its parent, and its end is the parent's exit code", async () => {
    const module = pathToFileURL(join(scripts, "bootstrap", "child.mjs")).href;
    const program = join(clone, "program.mjs");
    const child = ["-e", "console.log(process.pid); setInterval(() => {}, 1000)"];
    writeFileSync(
      program,
      `import { foreground } from ${JSON.stringify(module)};\nprocess.exitCode = await foreground(process.execPath, ${JSON.stringify(child)});\n`,
    );
    const parent = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
    const pid = Number(await new Promise<Buffer>((resolve) => parent.stdout.once("data", resolve)));
    const ended = new Promise((resolve) => parent.once("exit", resolve));
    parent.kill("SIGTERM");
    expect(await ended).toBe(128 + 15);
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });
});
