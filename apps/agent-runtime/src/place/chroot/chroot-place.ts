/**
 * Owns places made of an image alone: its layers flattened into a directory that becomes the root of the agent's
 * processes. For machines where this process is root and no container runtime works, as in a managed agent runtime.
 */

import { spawnSync } from "node:child_process";
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import path from "node:path";
import { MortiseError, type RuntimePlace, type StartInvocation } from "@mortise/contracts";
import {
  HARNESS_HOME,
  type HarnessShelf,
  type Image,
  type LayeredImages,
  type Mount,
  resolveDirectory,
  SANDBOX_UID,
  type ShelvedHarness,
  sealRoot,
  type Tree,
  type TreeStore,
  unpackBelow,
} from "@mortise/sandbox-manager";
import type { AgentPlace, PlaceOrder, PlaceProvider } from "../types.js";
import { assertSameImage, imageSpecOf, mayHoldHistory, workTree } from "../workspace.js";
import { ChrootSandbox } from "./chroot-sandbox.js";
import { flatten } from "./flatten.js";
import { killWithin } from "./processes.js";
import type { RootTools, TreeMount } from "./tools.js";

/** Name, major and minor number of the devices every program counts on. */
const DEVICES = [
  ["null", 3],
  ["zero", 5],
  ["full", 7],
  ["random", 8],
  ["urandom", 9],
] as const;
const MEMORY_DEVICES = "1";

export interface ChrootPlaceOptions {
  readonly images: LayeredImages;
  readonly trees: TreeStore;
  readonly harnesses: HarnessShelf;
  readonly tools: RootTools;
  readonly archives: string | undefined;
  /** Roots, one directory an invocation. */
  readonly roots: string;
  readonly scratch: string;
}

export class ChrootPlaces implements PlaceProvider {
  readonly kind = "chroot";
  readonly #options: ChrootPlaceOptions;

  constructor(options: ChrootPlaceOptions) {
    this.#options = options;
    for (const directory of [options.roots, options.scratch])
      mkdirSync(directory, { recursive: true, mode: 0o700 });
  }

  /** Ends and removes what an earlier process left. Call before anything else. */
  async sweep(): Promise<void> {
    const roots = realpathSync(this.#options.roots);
    await killWithin(roots);
    rmSync(roots, { recursive: true, force: true });
    mkdirSync(roots, { mode: 0o700 });
  }

  harness(name: string): Promise<ShelvedHarness> {
    return this.#options.harnesses.get(name);
  }

  prepareHarnesses(): Promise<void> {
    return this.#options.harnesses.prepareAll();
  }

  async make({ request, harness, modelPort, signal }: PlaceOrder): Promise<AgentPlace> {
    const { images, trees, tools, archives, scratch } = this.#options;
    const image = await images.prepare(imageSpecOf(request, archives));
    assertSameImage(request, image);
    const maker = {
      prepareTree: async (source: Parameters<TreeStore["put"]>[0]) => trees.put(source),
      readTree: (of: Image, directory: string) => images.readTree(of, directory),
    };
    const workspace = await workTree(request, image, maker, scratch);
    const directory = mkdtempSync(path.join(realpathSync(this.#options.roots), "root-"));
    const root = path.join(directory, "root");
    try {
      const stack = images.stackOf(image);
      const { nLeftOut } = await flatten(stack.layers, root, stack.root, signal);
      await furnish(root, request);
      const history = mayHoldHistory(request, workspace) ? await this.#hide(root, request) : "no-repository";
      const mounts = harness.mounts.map(treeMount);
      for (const { source, target } of mounts) this.#place(root, source, target);
      const sandbox = new ChrootSandbox({
        root,
        workdir: request.workdir,
        workspace,
        trees: mounts,
        outputBytes: request.limits.outputBytes,
        tools,
      });
      const leftOut =
        nLeftOut === 0 ? [] : [`${nLeftOut} devices, pipes or sockets of the image were left out`];
      return {
        sandbox,
        image,
        modelUrl: `http://127.0.0.1:${modelPort}`,
        said: {
          kind: "chroot",
          network: "open",
          history,
          limits: ["output", "time"],
          notes: [
            "the root is changed, and nothing else confines the agent",
            tools.canMount
              ? "processes have a namespace of their own"
              : "this machine allows no mounts: no /proc",
            "no answers were searched for: this runtime does not have them",
            ...leftOut,
          ],
        },
      };
    } catch (error) {
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#options.images.close();
  }

  async #hide(root: string, { workdir }: StartInvocation): Promise<RuntimePlace["history"]> {
    const { scratch } = this.#options;
    const store = mkdtempSync(path.join(scratch, "history-"));
    try {
      const { history } = await sealRoot(root, { workdir, store, answers: {}, scratch });
      return history.state === "hidden" ? "hidden" : "no-repository";
    } finally {
      rmSync(store, { recursive: true, force: true });
    }
  }

  /** A place to mount to, or a copy where nothing can be mounted. */
  #place(root: string, source: string, target: string): void {
    const place = resolveDirectory(root, target.slice(1), 0);
    if (!this.#options.tools.canMount) cpSync(source, place, { recursive: true, verbatimSymlinks: true });
  }
}

/** What the image lacks of what programs count on; the work tree, where it is not the image's own. */
async function furnish(root: string, { workspace, workdir }: StartInvocation): Promise<void> {
  for (const name of ["proc", "dev", "tmp"]) resolveDirectory(root, name, 0);
  for (const [name, minor] of DEVICES) {
    const device = path.join(root, "dev", name);
    if (existsSync(device)) rmSync(device, { recursive: true, force: true });
    const { status, stderr } = spawnSync(
      "mknod",
      ["-m", "0666", device, "c", MEMORY_DEVICES, String(minor)],
      { encoding: "utf8" },
    );
    if (status !== 0)
      throw new MortiseError({
        code: "MORTISE_SANDBOX_SETUP",
        message: `/dev/${name} cannot be made: ${stderr.trim()}`,
        fix: "Give the agent runtime the right to make devices (CAP_MKNOD).",
      });
  }
  resolveDirectory(root, HARNESS_HOME.slice(1), SANDBOX_UID);
  if (workspace.kind === "image") return;
  const tar = Buffer.from(workspace.tar, "base64");
  const place = resolveDirectory(root, workdir.slice(1), SANDBOX_UID);
  chownSync(place, SANDBOX_UID, SANDBOX_UID);
  await unpackBelow(root, workdir, tar, SANDBOX_UID);
}

function treeMount({ source, target }: Mount): TreeMount {
  return { source: typeof source === "string" ? source : directoryOf(source), target };
}

function directoryOf({ directory }: Tree): string {
  if (directory !== undefined) return directory;
  throw new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message: "a mounted tree is part of an image" });
}
