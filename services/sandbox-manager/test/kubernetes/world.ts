/** What the tests of the kubernetes backend's wire work with: a fake API server, a registry, a backend on both. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { SiteConfig } from "@mortise/contracts";
import { KubernetesBackend } from "../../dist/backend/kubernetes/backend.js";
import type { Command, Sandbox, SandboxSpec } from "../../src/backend/types.js";
import { file } from "../../src/conformance/tar-builder.js";
import type { RegistryOptions } from "../../src/images/registry/registry-source.js";
import { gzipLayer, RegistryServer } from "../images/registry-server.js";
import { FakeApiServer } from "./fake-api-server.js";
import { FakeHelper } from "./fake-helper.js";

export const LIMITS = {
  cpus: 0.5,
  memoryBytes: 64 * 1024 ** 2,
  pids: 16,
  diskBytes: 1024 ** 2,
  outputBytes: 4096,
};

export class World {
  readonly api = new FakeApiServer();
  readonly registry = new RegistryServer();
  readonly helper = new FakeHelper();
  readonly directory = mkdtempSync(path.join(tmpdir(), "mortise-fake-kubernetes-"));
  backend!: KubernetesBackend;
  #serial = 0;

  async start(settings: object = {}): Promise<this> {
    await this.api.start();
    await this.registry.start();
    this.registry.putImage("host", [gzipLayer([file("etc/issue", "x\n")])], {
      tag: "1",
      config: { Env: ["FROM=image"] },
    });
    this.api.onCreate = (pod) => this.api.run(pod);
    this.api.onExec = this.helper.serve;
    this.backend = this.make(settings);
    return this;
  }

  /** Another backend on the same server and state directory. */
  make(settings: object = {}, registry: Partial<RegistryOptions> = {}): KubernetesBackend {
    const kubeconfig = path.join(this.directory, "kubeconfig");
    const named = (name: string, rest: object) => [{ name, ...rest }];
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        clusters: named("fake", { cluster: { server: this.api.url, "insecure-skip-tls-verify": true } }),
        users: named("fake", { user: { token: "t" } }),
        contexts: named("fake", { context: { cluster: "fake", user: "fake" } }),
        "current-context": "fake",
      }),
    );
    const { kubernetes } = SiteConfig.shape.sandbox.parse({
      kubernetes: {
        kubeconfig,
        namespace: "sandboxes",
        helperImage: "registry.example/pod-helper:1",
        hostImage: `${this.registry.host}/host:1`,
        ...settings,
      },
    });
    const stateDirectory = path.join(this.directory, "state");
    return new KubernetesBackend({ stateDirectory, settings: kubernetes, registry });
  }

  async create(changes: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    return this.backend.create({
      id: `s-${++this.#serial}`,
      image: await this.backend.prepareImage({ kind: "host" }),
      workspace: await this.backend.prepareTree({ kind: "files", files: [] }),
      mounts: [],
      limits: LIMITS,
      network: { kind: "none" },
      ...changes,
    });
  }

  sh(sandbox: Sandbox, script: string, changes: Partial<Command> = {}) {
    return sandbox.exec({
      argv: ["/bin/sh", "-c", script],
      environment: { WORD: "said" },
      timeoutMs: 20_000,
      ...changes,
    });
  }

  async stop(): Promise<void> {
    await this.backend.stop().catch(() => undefined);
    await this.api.stop();
    await this.registry.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
