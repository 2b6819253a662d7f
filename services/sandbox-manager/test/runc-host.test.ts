/** What only the runc backend promises: filtered system calls, a flat host, and a sweep after SIGKILL. */
import { type ChildProcess, fork } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RuncBackend } from "../src/backend/runc/backend.js";
import { CgroupHost } from "../src/backend/runc/cgroup.js";
import { cgroupParent } from "../src/backend/runc/sweep.js";
import type { Sandbox, SandboxSpec } from "../src/backend/types.js";

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

  const node = (sandbox: Sandbox, script: string) =>
    sandbox.exec({
      argv: ["node", "-e", script],
      environment: { PATH: "/usr/bin", HOME: "/tmp" },
      timeoutMs: 20_000,
    });

  test("system calls that reach around the sandbox are refused from inside", async () => {
    const sandbox = await backend.create({
      ...shared,
      id: "calls",
      mounts: [
        {
          source: await backend.prepareTree({ kind: "directory", directory: foreignCalls() }),
          target: "/tests",
        },
      ],
    });
    const result = await node(sandbox, PROBE);
    await sandbox.destroy();
    expect(
      JSON.parse(Buffer.from(result.stdout.bytes).toString() || Buffer.from(result.stderr.bytes).toString()),
    ).toEqual({
      "socket vsock": "EPERM",
      "socket packet": "EPERM",
      "socket alg": "EPERM",
      "unshare user": "EPERM",
      mount: "EPERM",
      ptrace: "EPERM",
      keyctl: "EPERM",
      io_uring_setup: "EPERM",
      bpf: "EPERM",
      "socket inet": "ok",
    });
  });

  test("fifty sandboxes leave descriptors, mounts and control groups as they were", async () => {
    const count = () => ({
      descriptors: openDescriptors(),
      mounts: mountsBelow(stateDirectory).length,
      groups: CgroupHost.detect()!.children(cgroupParent(stateDirectory)).length,
    });
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

/** The foreign-function library the manager itself uses, as a directory a sandbox can mount. */
function foreignCalls(): string {
  const target = path.join(base, "koffi", "node_modules");
  const koffi = realpathSync(path.join(import.meta.dirname, "../node_modules/koffi"));
  mkdirSync(path.join(target, "@koromix"), { recursive: true });
  cpSync(koffi, path.join(target, "koffi"), { recursive: true });
  const native = path.join(koffi, "..", "@koromix");
  for (const name of readdirSync(native))
    cpSync(realpathSync(path.join(native, name)), path.join(target, "@koromix", name), { recursive: true });
  return path.join(base, "koffi");
}

const PROBE = `
const koffi = require("/tests/node_modules/koffi");
const call = koffi.load(null).func("long syscall(long, long, long, long, long, long)");
const numbers = process.arch === "arm64"
  ? { socket: 198, unshare: 97, mount: 40, ptrace: 117, keyctl: 219, io_uring_setup: 425, bpf: 280 }
  : { socket: 41, unshare: 272, mount: 165, ptrace: 101, keyctl: 250, io_uring_setup: 425, bpf: 321 };
const names = Object.fromEntries(Object.entries(require("os").constants.errno).map(([name, n]) => [n, name]));
const attempt = (name, ...a) => call(numbers[name], ...a, ...Array(5 - a.length).fill(0)) >= 0 ? "ok" : names[koffi.errno()];
console.log(JSON.stringify({
  "socket vsock": attempt("socket", 40, 1, 0),
  "socket packet": attempt("socket", 17, 3, 0),
  "socket alg": attempt("socket", 38, 5, 0),
  "unshare user": attempt("unshare", 0x10000000),
  mount: attempt("mount"),
  ptrace: attempt("ptrace"),
  keyctl: attempt("keyctl"),
  io_uring_setup: attempt("io_uring_setup", 1),
  bpf: attempt("bpf"),
  "socket inet": attempt("socket", 2, 1, 0),
}));`;
