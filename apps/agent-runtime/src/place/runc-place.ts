/**
 * Owns places made by runc: the same sandboxes a site's own manager makes, with a network that leads to the model only.
 * Whatever is proved here is proved to this runtime; its caller can only take its word.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { MortiseError, type RuntimePlace } from "@mortise/contracts";
import {
  type HarnessShelf,
  type Image,
  type RuncBackend,
  type Sandbox,
  type SandboxSpec,
  type ShelvedHarness,
  type Snapshot,
  sealRoot,
} from "@mortise/sandbox-manager";
import type { AgentPlace, PlaceOrder, PlaceProvider } from "./types.js";
import { assertSameImage, imageSpecOf, mayHoldHistory, workTree } from "./workspace.js";

const ENFORCED = ["cpus", "memory", "pids", "disk", "output", "time"];

export interface RuncPlaceOptions {
  /** Started. */
  readonly backend: RuncBackend;
  readonly harnesses: HarnessShelf;
  readonly archives: string | undefined;
  /** For what is needed only meanwhile. */
  readonly scratch: string;
}

export class RuncPlaces implements PlaceProvider {
  readonly kind = "runc";
  readonly #options: RuncPlaceOptions;
  #nMade = 0;

  constructor(options: RuncPlaceOptions) {
    this.#options = options;
    mkdirSync(options.scratch, { recursive: true, mode: 0o700 });
  }

  harness(name: string): Promise<ShelvedHarness> {
    return this.#options.harnesses.get(name);
  }

  prepareHarnesses(): Promise<void> {
    return this.#options.harnesses.prepareAll();
  }

  async make({ request, harness, modelPort, signal }: PlaceOrder): Promise<AgentPlace> {
    const { backend, archives, scratch } = this.#options;
    const image = await backend.prepareImage(imageSpecOf(request, archives));
    assertSameImage(request, image);
    const workspace = await workTree(request, image, backend, scratch);
    signal.throwIfAborted();
    const spec = { image, workspace, workdir: request.workdir, limits: limitsOf(request) };
    const hidden = mayHoldHistory(request, workspace) ? await this.#hidden(spec) : undefined;
    try {
      const sandbox = await backend.create({
        ...spec,
        id: `invocation-${++this.#nMade}`,
        image: hidden?.snapshot ?? image,
        mounts: harness.mounts,
        network: { kind: "model", host: "127.0.0.1", port: modelPort },
      });
      return await this.#proved(sandbox, { image, hidden });
    } catch (error) {
      await hidden?.snapshot.release();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#options.backend.stop();
  }

  async #proved(
    sandbox: Sandbox,
    { image, hidden }: { image: Image; hidden: Hidden | undefined },
  ): Promise<AgentPlace> {
    try {
      const { isClosed, probes } = await sandbox.proveNetwork();
      if (!isClosed)
        throw new MortiseError({
          code: "MORTISE_SANDBOX_NOT_CLOSED",
          message: `probes: ${JSON.stringify(probes.filter(({ expected, observed }) => expected !== observed))}`,
        });
      const release = async () => {
        await sandbox.destroy();
        await hidden?.snapshot.release();
      };
      return {
        sandbox: placed(sandbox, release),
        image,
        said: {
          kind: "runc",
          network: "closed",
          history: hidden?.history ?? "no-repository",
          limits: ENFORCED,
          probes: probes.map(({ name, expected, observed }) => ({ name, expected, observed })),
          notes: ["no answers were searched for: this runtime does not have them"],
        },
      };
    } catch (error) {
      await sandbox.destroy();
      throw error;
    }
  }

  /** A template whose history is gone, as a snapshot. */
  async #hidden(spec: Omit<SandboxSpec, "id" | "mounts" | "network">): Promise<Hidden> {
    const { backend, scratch } = this.#options;
    const template = await backend.create({
      ...spec,
      id: `template-${++this.#nMade}`,
      mounts: [],
      network: { kind: "none" },
    });
    const store = mkdtempSync(path.join(scratch, "history-"));
    try {
      const request = { workdir: spec.workdir!, store, answers: {}, scratch };
      const { history } = await sealRoot(template.hostRoot!, request);
      const snapshot = await template.snapshot();
      return { snapshot, history: history.state === "hidden" ? "hidden" : "no-repository" };
    } finally {
      rmSync(store, { recursive: true, force: true });
      await template.destroy();
    }
  }
}

interface Hidden {
  readonly snapshot: Snapshot;
  readonly history: RuntimePlace["history"];
}

function limitsOf({ limits }: PlaceOrder["request"]): SandboxSpec["limits"] {
  const { cpus, memoryBytes, pids, diskBytes, outputBytes } = limits;
  return { cpus, memoryBytes, pids, diskBytes, outputBytes };
}

/** The sandbox, whose end also gives back what it was made of. */
function placed(sandbox: Sandbox, release: () => Promise<void>): AgentPlace["sandbox"] {
  return {
    exec: (command) => sandbox.exec(command),
    putTar: (directory, tar, owner) => sandbox.putTar(directory, tar, owner),
    getTar: (directory) => sandbox.getTar(directory),
    quiesce: () => sandbox.quiesce(),
    diff: (limits) => sandbox.diff(limits),
    stats: () => sandbox.stats(),
    get modelTimeMs() {
      return sandbox.modelTimeMs ?? 0;
    },
    destroy: release,
  };
}
