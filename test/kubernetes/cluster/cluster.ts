/**
 * Owns a Kubernetes of one node on this machine: etcd, API server, scheduler, kubelet, and a containerd of its own, all
 * below one directory and gone with it. Pods are real ones, in a network of their own that leads to this machine.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import path from "node:path";
import { CoreV1Api, KubeConfig, loadAllYaml, RbacAuthorizationV1Api } from "@kubernetes/client-node";
import { clusterFiles } from "./files.js";
import { makeGroups, removeGroups } from "./groups.js";
import type { Parts } from "./parts.js";
import { Processes } from "./processes.js";

const START_TIMEOUT_MS = 180_000;
const BRIDGE = "mortise-test0";

export class Cluster {
  readonly directory: string;
  readonly #processes: Processes;
  readonly #group = `mortise-kubernetes-${process.pid}`;
  #config: KubeConfig | undefined;

  private constructor(directory: string) {
    this.directory = directory;
    this.#processes = new Processes(path.join(directory, "log"));
  }

  /** @param pauseImage reference of the image of a pod's first process; pulled like any other */
  static async start(parts: Parts, pauseImage: string): Promise<Cluster> {
    const directory = mkdtempSync(path.join(tmpdir(), "mortise-kubernetes-"));
    for (const name of ["log", "etcd", "certificates", "cni", "kubelet/seccomp"])
      mkdirSync(path.join(directory, name), { recursive: true });
    const cluster = new Cluster(directory);
    try {
      await cluster.#start(parts, pauseImage);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** Of somebody who may do everything. */
  get adminConfig(): KubeConfig {
    return this.#config!;
  }

  get kubeconfig(): string {
    return path.join(this.directory, "kubeconfig");
  }

  /** Where a kubelet looks for profiles. */
  get seccompDirectory(): string {
    return path.join(this.directory, "kubelet/seccomp");
  }

  /** Creates what a manifest of the project describes, but workloads: those need images nobody built here. */
  async apply(manifest: string): Promise<void> {
    const core = this.adminConfig.makeApiClient(CoreV1Api);
    const rbac = this.adminConfig.makeApiClient(RbacAuthorizationV1Api);
    for (const object of loadAllYaml(readFileSync(manifest, "utf8"))) {
      const namespace = object.metadata?.namespace ?? "default";
      if (object.kind === "Namespace") await core.createNamespace({ body: object });
      else if (object.kind === "ServiceAccount")
        await core.createNamespacedServiceAccount({ namespace, body: object });
      else if (object.kind === "Role") await rbac.createNamespacedRole({ namespace, body: object });
      else if (object.kind === "RoleBinding")
        await rbac.createNamespacedRoleBinding({ namespace, body: object });
      else throw new Error(`${manifest}: nothing here creates a ${object.kind}`);
    }
  }

  /** Ends everything, in the order in which it depends on each other, and leaves no mount, interface or group. */
  async stop(): Promise<void> {
    await this.#processes.stop();
    endShims(this.directory);
    for (const mount of mountsBelow(this.directory)) spawnSync("umount", ["-l", mount]);
    spawnSync("ip", ["link", "delete", BRIDGE]);
    await removeGroups(this.#group);
    rmSync(this.directory, { recursive: true, force: true });
  }

  async #start(parts: Parts, pauseImage: string): Promise<void> {
    const [etcdPort, peerPort, apiPort, schedulerPort, kubeletPort] = await freePorts(5);
    const { directory } = this;
    const facts = {
      directory,
      parts,
      pauseImage,
      bridge: BRIDGE,
      nodeAddress: nodeAddress(),
      group: this.#group,
    };
    makeGroups(this.#group);
    const files = clusterFiles({ ...facts, apiPort: apiPort!, kubeletPort: kubeletPort! });
    for (const [name, content] of Object.entries(files))
      writeFileSync(path.join(directory, name), content, { mode: 0o600 });
    const key = path.join(directory, "service-account.key");
    spawnSync("openssl", ["genrsa", "-out", key, "2048"]);
    const etcd = `http://127.0.0.1:${etcdPort}`;
    const peer = `http://127.0.0.1:${peerPort}`;
    this.#processes.start("etcd", parts.etcd, [
      `--data-dir=${directory}/etcd`,
      `--listen-client-urls=${etcd}`,
      `--advertise-client-urls=${etcd}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
    ]);
    this.#processes.start("kube-apiserver", parts.kubernetes, [
      "kube-apiserver",
      `--etcd-servers=${etcd}`,
      `--cert-dir=${directory}/certificates`,
      "--bind-address=127.0.0.1",
      `--secure-port=${apiPort}`,
      "--service-cluster-ip-range=10.96.0.0/24",
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${key}`,
      `--service-account-signing-key-file=${key}`,
      `--token-auth-file=${directory}/tokens.csv`,
      "--authorization-mode=RBAC",
      // No controllers run here that would make the default account, or take the mark of a new node away.
      "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
      "--endpoint-reconciler-type=none",
      "--kubelet-preferred-address-types=InternalIP",
    ]);
    const config = new KubeConfig();
    config.loadFromFile(this.kubeconfig);
    this.#config = config;
    const core = config.makeApiClient(CoreV1Api);
    await this.#processes.until(
      "the API server",
      async () => (await core.listNode()).items.length === 0,
      START_TIMEOUT_MS,
    );
    this.#processes.start("containerd", parts.containerd, ["-c", path.join(directory, "containerd.toml")]);
    this.#processes.start("kube-scheduler", parts.kubernetes, [
      "kube-scheduler",
      `--kubeconfig=${this.kubeconfig}`,
      "--leader-elect=false",
      "--bind-address=127.0.0.1",
      `--secure-port=${schedulerPort}`,
    ]);
    const socket = path.join(directory, "containerd.sock");
    await this.#processes.until(
      "containerd",
      async () => spawnSync("ctr", ["-a", socket, "version"]).status === 0,
      START_TIMEOUT_MS,
    );
    this.#processes.start("kubelet", parts.kubernetes, [
      "kubelet",
      `--kubeconfig=${this.kubeconfig}`,
      `--config=${directory}/kubelet.yaml`,
      `--root-dir=${directory}/kubelet`,
      `--cert-dir=${directory}/kubelet/pki`,
      "--hostname-override=node",
      `--node-ip=${facts.nodeAddress}`,
    ]);
    await this.#processes.until(
      "a ready node",
      async () => {
        const { items } = await core.listNode();
        return items.some((node) =>
          node.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"),
        );
      },
      START_TIMEOUT_MS,
    );
  }
}

/** An address of this machine: a node has none of the loopback. */
function nodeAddress(): string {
  const found = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal);
  if (found === undefined) throw new Error("this machine has no address besides the loopback");
  return found.address;
}

async function freePorts(n: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: n }, async () => {
      const server = net.createServer();
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as net.AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** Containers outlive their containerd; what keeps them was started for this directory. */
function endShims(directory: string): void {
  for (const name of readdirSync("/proc").filter((one) => /^[0-9]+$/.test(one))) {
    try {
      const argv = readFileSync(`/proc/${name}/cmdline`, "latin1").split("\0");
      if (!argv[0]?.includes("containerd-shim") || !argv.some((word) => word.startsWith(directory))) continue;
      const below = readFileSync(`/proc/${name}/task/${name}/children`, "latin1").trim().split(" ");
      for (const pid of [...below, name]) if (pid !== "") process.kill(Number(pid), "SIGKILL");
    } catch {
      // It ended meanwhile.
    }
  }
}

function mountsBelow(directory: string): string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((mount) => mount.startsWith(directory))
    .reverse();
}
