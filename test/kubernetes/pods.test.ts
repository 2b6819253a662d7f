/** What only a cluster can show: how pods end without their manager, what nobody inside can touch, real refusals. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { CoreV1Api, KubeConfig, NetworkingV1Api, type V1Pod } from "@kubernetes/client-node";
import { afterAll, afterEach, describe, expect, inject, test } from "vitest";
import { KubernetesBackend } from "../../services/sandbox-manager/dist/backend/kubernetes/backend.js";
import type { Sandbox, SandboxSpec } from "../../services/sandbox-manager/dist/backend/types.js";
import { type Settings, settingsOf } from "./settings.js";

const setup = inject("kubernetes");
const root = mkdtempSync(path.join(tmpdir(), "mortise-kubernetes-pods-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const MIB = 1024 ** 2;
const LIMITS = { cpus: 1, memoryBytes: 128 * MIB, pids: 48, diskBytes: 64 * MIB, outputBytes: 65_536 };

describe.skipIf(setup.absent !== undefined)("pods of a cluster", () => {
  const started: KubernetesBackend[] = [];
  afterEach(async () => {
    for (const backend of started.splice(0)) await backend.stop();
  });

  async function backendOf(name: string, more: Partial<Settings> = {}): Promise<KubernetesBackend> {
    const backend = new KubernetesBackend({
      stateDirectory: path.join(root, name),
      settings: settingsOf(setup, more),
    });
    await backend.start();
    started.push(backend);
    return backend;
  }
  async function create(backend: KubernetesBackend, more: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    return backend.create({
      id: `pods-${process.pid}-${Math.random().toString(36).slice(2)}`,
      image: await backend.prepareImage({ kind: "host" }),
      workspace: await backend.prepareTree({ kind: "files", files: [] }),
      mounts: [],
      limits: LIMITS,
      network: { kind: "none" },
      ...more,
    });
  }
  const sh = (sandbox: Sandbox, script: string, user: "agent" | "root" = "agent") =>
    sandbox.exec({ argv: ["sh", "-c", script], environment: {}, timeoutMs: 30_000, user });
  const out = async (sandbox: Sandbox, script: string, user: "agent" | "root" = "agent") =>
    Buffer.from((await sh(sandbox, script, user)).stdout.bytes).toString();

  const admin = () => {
    const config = new KubeConfig();
    config.loadFromFile(setup.kubeconfig!);
    return config;
  };
  const namespace = "mortise-sandboxes";
  async function podsOf(id?: string): Promise<V1Pod[]> {
    const { items } = await admin().makeApiClient(CoreV1Api).listNamespacedPod({ namespace });
    return items.filter(
      (pod) => id === undefined || pod.metadata?.annotations?.["mortise.dev/sandbox"] === id,
    );
  }

  test("end by themselves at their deadline, and their command is lost with the reason", async () => {
    const backend = await backendOf("deadline", { deadlineMs: 15_000 });
    const sandbox = await create(backend);
    const { outcome } = await sandbox.exec({ argv: ["sleep", "600"], environment: {}, timeoutMs: 100_000 });
    expect(outcome).toMatchObject({ kind: "lost", reason: expect.stringContaining("DeadlineExceeded") });
    expect((await podsOf(sandbox.id))[0]!.status?.phase).toBe("Failed");
  });

  test("of a manager that was killed are removed by the next one in its place, and nobody else's", async () => {
    const other = await create(await backendOf("other"));
    const directory = path.join(root, "killed");
    const orphan = `orphan-${process.pid}`;
    const child = spawn(process.execPath, [path.join(import.meta.dirname, "killed-manager.mjs")], {
      env: { ...process.env, ID: orphan, STATE: directory, SETTINGS: JSON.stringify(settingsOf(setup)) },
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise<void>((resolve, reject) => {
      child.stdout.on("data", (bytes: Buffer) => bytes.includes("up") && resolve());
      child.once("exit", (code) => reject(new Error(`it ended: ${code}`)));
    });
    child.removeAllListeners("exit");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await podsOf(orphan)).toHaveLength(1);
    const backend = new KubernetesBackend({ stateDirectory: directory, settings: settingsOf(setup) });
    expect((await backend.start()).containers).toBe(1);
    started.push(backend);
    await expect.poll(() => podsOf(orphan), { timeout: 60_000 }).toEqual([]);
    expect(await out(other, "echo lives")).toBe("lives\n");
  });

  test("have no way out and no way to make one, for the agent and for its root", async () => {
    const sandbox = await create(await backendOf("closed"));
    const proof = await sandbox.proveNetwork();
    expect(proof.isClosed).toBe(true);
    const names = proof.probes.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(["interfaces besides lo", "API server", "kubelet of the node"]),
    );
    const raise = `const fs = require("node:fs"); for (const name of fs.readdirSync("/sys/class/net"))
      try { fs.writeFileSync("/sys/class/net/" + name + "/flags", "0x1003"); console.log("raised " + name); } catch {}`;
    for (const user of ["agent", "root"] as const) {
      const { stdout } = await sandbox.exec({
        argv: ["node", "-e", raise],
        environment: {},
        timeoutMs: 30_000,
        user,
      });
      expect(Buffer.from(stdout.bytes).toString()).toBe("");
    }
    expect((await sandbox.proveNetwork()).isClosed).toBe(true);
  });

  test("keep their first process and the helper, whatever is sent to them from inside", async () => {
    const sandbox = await create(await backendOf("signals"));
    const attack =
      "for one in 9 15 3 11 6 4 7 8; do kill -$one 1; kill -$one $PPID; done 2>/dev/null; echo still";
    for (const user of ["agent", "root"] as const) {
      expect(await sh(sandbox, attack, user)).toMatchObject({ outcome: { kind: "exited", code: 0 } });
      // Everybody but whoever sends it, as far as it may.
      expect(await out(sandbox, "kill -9 -1; echo alone", user)).toBe("alone\n");
      expect(await out(sandbox, "echo here", user)).toBe("here\n");
    }
    expect(await out(sandbox, "cat /proc/1/environ /proc/1/maps 2>/dev/null | wc -c", "root")).toBe("0\n");
    expect(
      await out(
        sandbox,
        "echo x > /.mortise/pod-helper; mv /.mortise /gone; rm -r /.mortise; ls /.mortise",
        "root",
      ),
    ).toBe("pod-helper\n");
  });

  test("are quiesced, and give their change, when nothing more can be started in them", async () => {
    const backend = await backendOf("saturated");
    const workspace = await backend.prepareTree({ kind: "files", files: [] });
    const sandbox = await create(backend, { workspace });
    const saturate = `require("node:fs").writeFileSync("/workspace/left", "behind");
      const { spawn } = require("node:child_process"); let failed = 0;
      for (let i = 0; i < 90; i++) spawn("sleep", ["600"]).on("error", () => ++failed === 20 && console.log("full"));
      setInterval(() => {}, 1000);`;
    const full = Promise.withResolvers<void>();
    const running = sandbox.exec({
      argv: ["node", "-e", saturate],
      environment: {},
      timeoutMs: 100_000,
      onStdout: () => full.resolve(),
    });
    await full.promise;
    await sandbox.quiesce();
    expect((await running).outcome).toEqual({ kind: "cancelled" });
    const { entries } = await sandbox.diff({ maxFileBytes: MIB, maxTotalBytes: MIB });
    expect(entries.map(({ path: name }) => name)).toEqual(["left"]);
  });

  test("mount what the cluster has already instead of a copy", async () => {
    const shared = path.join(root, "shared");
    mkdirSync(path.join(shared, "runtime/deep"), { recursive: true });
    writeFileSync(path.join(shared, "runtime/deep/file"), "there\n");
    const backend = await backendOf("shared", {
      volumes: [{ directory: shared, hostPath: shared }],
      maxCopiedBytes: 0,
    });
    const sandbox = await create(backend, {
      mounts: [{ source: path.join(shared, "runtime"), target: "/opt/runtime" }],
    });
    expect(await out(sandbox, "cat /opt/runtime/deep/file; echo x > /opt/runtime/new || echo no")).toBe(
      "there\nno\n",
    );
    const copied = create(backend, { mounts: [{ source: import.meta.dirname, target: "/opt/copy" }] });
    await expect(copied).rejects.toThrow(/maxCopiedBytes/);
  });

  test("that the cluster cannot run say why, and leave nothing", async () => {
    const backend = await backendOf("refused", { startTimeoutMs: 20_000 });
    const huge = create(backend, { id: "too-large", limits: { ...LIMITS, cpus: 5000 } });
    await expect(huge).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_SETUP",
      message: expect.stringMatching(/Unschedulable.*Insufficient cpu/),
    });
    const missing = await backendOf("missing", { helperImage: setup.images!.helper.replace(/:1$/, ":none") });
    await expect(create(missing, { id: "no-image" })).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_IMAGE_UNKNOWN",
    });
    const wrong = await backendOf("wrong", { runtimeClass: "no-such-class" });
    await expect(create(wrong, { id: "no-class" })).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_BACKEND",
      message: expect.stringContaining("no-such-class"),
    });
    for (const id of ["too-large", "no-image", "no-class"])
      await expect.poll(() => podsOf(id), { timeout: 60_000 }).toEqual([]);
  });

  test("are denied everything by a policy too", async () => {
    await backendOf("policy");
    const { items } = await admin().makeApiClient(NetworkingV1Api).listNamespacedNetworkPolicy({ namespace });
    expect(items.map(({ spec }) => spec?.policyTypes)).toEqual([["Ingress", "Egress"]]);
  });
});
