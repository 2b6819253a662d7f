/**
 * Owns harnesses as sandboxes need them: each of the site file's made ready on this host once, its runtime and
 * interpreters as read-only mounts. Does not know how one behaves on a trial (harness/shelved-harness.ts).
 */
import path from "node:path";
import { MortiseError, type SiteConfig } from "@mortise/contracts";
import {
  type ElfNeeds,
  elfNeeds,
  ensureRuntime,
  ensureToolbox,
  type HarnessAdapter,
  TOOLBOX_TARGET,
} from "@mortise/harness";
import type { Log } from "@mortise/kernel";
import type { Mount, SandboxBackend } from "../backend/types.js";
import { HARNESS_TARGET } from "../harness/places.js";
import { type ResolvedHarness, resolveHarness } from "../harness/resolved.js";
import { type HarnessParts, ShelvedHarness } from "../harness/shelved-harness.js";
import { Shelf } from "./shelf.js";

/** What making harnesses ready asks of where they will run. */
export interface HarnessBackend extends Pick<SandboxBackend, "isInsecure" | "prepareTree"> {
  readonly name: string;
}

export class HarnessShelf {
  readonly #backend: HarnessBackend;
  readonly #log: Log;
  /** Checked when the service starts: a wrong one is the operator's to correct before any trial. */
  readonly #resolved: ReadonlyMap<string, ResolvedHarness>;
  readonly #harnesses = new Shelf<ShelvedHarness>();

  /** @throws MortiseError MORTISE_CONFIG_INVALID, MORTISE_HARNESS_UNKNOWN */
  constructor(backend: HarnessBackend, site: Pick<SiteConfig, "harness">, log: Log) {
    this.#backend = backend;
    this.#log = log;
    this.#resolved = new Map(
      Object.entries(site.harness).flatMap(([name, given]) =>
        "remote" in given ? [] : [[name, resolveHarness(name, given)]],
      ),
    );
  }

  /** Rejects with MORTISE_HARNESS_UNKNOWN, MORTISE_HARNESS_RUNTIME or MORTISE_HARNESS_UNFIT. */
  async get(name: string): Promise<ShelvedHarness> {
    const resolved = this.#resolved.get(name);
    if (resolved === undefined)
      throw new MortiseError({
        code: "MORTISE_HARNESS_UNKNOWN",
        message: `harness ${JSON.stringify(name)}; defined: ${[...this.#resolved.keys()].join(", ") || "none"}`,
      });
    return this.#harnesses.get(name, async () => new ShelvedHarness(await this.#parts(resolved)));
  }

  /**
   * Makes every harness of the site ready, so that no trial's setup waits for a registry. One that cannot be is
   * logged and tried again by the first trial that asks for it.
   */
  async prepareAll(): Promise<void> {
    for (const name of this.#resolved.keys()) {
      const since = performance.now();
      try {
        const { version } = await this.get(name);
        this.#log.info({ event: "harness.ready", harness: name, version, ms: performance.now() - since });
      } catch (error) {
        this.#log.error({ event: "harness.not-ready", harness: name, err: error });
      }
    }
  }

  async #parts(resolved: ResolvedHarness): Promise<HarnessParts> {
    if (resolved.isInstalled) {
      const tree = await this.#backend.prepareTree({ kind: "directory", directory: resolved.folder });
      return { resolved, mounts: [{ source: tree, target: HARNESS_TARGET }], wants: undefined };
    }
    const { adapter, folder, name } = resolved;
    if (this.#backend.isInsecure)
      throw new MortiseError({
        code: "MORTISE_HARNESS_UNFIT",
        message: `${name}: the ${this.#backend.name} backend has no place of its own to mount a runtime in.`,
        fix: "Use runc or docker, or configure the harness as a command (directory and argv).",
        detail: { field: "sandbox.backend" },
      });
    const onProgress = (line: string) => this.#log.info({ event: "harness.progress", harness: name, line });
    const runtime = await ensureRuntime(adapter, { folder, onProgress });
    const { programs } = adapter.needs;
    const toolbox = await ensureToolbox({
      programs,
      ...(runtime.python === "" ? {} : { python: runtime.python }),
    });
    const mounts: Mount[] = [
      { source: runtime.directory, target: HARNESS_TARGET },
      { source: toolbox.directory, target: TOOLBOX_TARGET },
    ];
    const wants = {
      harness: `${adapter.name} ${adapter.version}`,
      binaries: nativeNeeds(adapter, runtime.directory),
      programs: programs.filter((program) => !toolbox.programs.includes(program)),
    };
    return { resolved, mounts, wants };
  }
}

/** Of the programs that are started with the image's own C library. */
function nativeNeeds(adapter: HarnessAdapter, runtime: string): ReadonlyMap<string, ElfNeeds> {
  const needs = new Map<string, ElfNeeds>();
  for (const binary of adapter.needs.binaries) {
    const found = elfNeeds(path.join(runtime, binary));
    if (found !== undefined) needs.set(path.basename(binary), found);
  }
  return needs;
}
