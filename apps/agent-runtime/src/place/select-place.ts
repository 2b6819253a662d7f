/**
 * Owns the choice of where agents run. What is chosen, and why not a better one, is said; without root there is
 * nothing to choose, and the runtime does not start.
 */
import path from "node:path";
import { type AgentRuntimeConfig, MortiseError } from "@mortise/contracts";
import type { Log } from "@mortise/kernel";
import { HarnessShelf, LayeredImages, RuncBackend, registryOf, TreeStore } from "@mortise/sandbox-manager";
import { ChrootPlaces } from "./chroot/chroot-place.js";
import { rootTools } from "./chroot/tools.js";
import { RuncPlaces } from "./runc-place.js";
import type { PlaceProvider } from "./types.js";

/** @throws MortiseError MORTISE_SANDBOX_BACKEND with the reasons */
export async function selectPlace(config: AgentRuntimeConfig, log: Log): Promise<PlaceProvider> {
  const { kind } = config.place;
  if (process.getuid?.() !== 0)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_BACKEND",
      message: "an image's files keep their owners and its root is entered: this process is not root.",
      fix: "Run the agent runtime as root of its own machine or container.",
    });
  if (kind === "chroot") return chrootPlaces(config, log);
  const backend = new RuncBackend({
    stateDirectory: path.join(config.place.directory, "runc"),
    runc: config.place.runc,
    registry: registryOf(config.images),
  });
  const availability = await backend.availability();
  if (availability.ok) {
    await backend.start();
    log.info({ event: "place.chosen", place: "runc" });
    return new RuncPlaces({
      backend,
      harnesses: new HarnessShelf(backend, config, log),
      archives: config.images.archives,
      scratch: path.join(config.place.directory, "scratch"),
    });
  }
  if (kind === "runc")
    throw new MortiseError({
      code: "MORTISE_SANDBOX_BACKEND",
      message: `place.kind is runc: ${availability.reason}`,
      fix: "Install what the reason names, or set place.kind to chroot.",
    });
  log.warn({ event: "place.passed-over", place: "runc", reason: availability.reason });
  return chrootPlaces(config, log);
}

async function chrootPlaces(config: AgentRuntimeConfig, log: Log): Promise<PlaceProvider> {
  const tools = rootTools();
  const directory = path.join(config.place.directory, "chroot");
  const trees = new TreeStore(path.join(directory, "trees"), undefined);
  const backend = {
    name: "chroot",
    isInsecure: false,
    prepareTree: async (source: Parameters<TreeStore["put"]>[0]) => trees.put(source),
  };
  const places = new ChrootPlaces({
    images: new LayeredImages(directory, registryOf(config.images)),
    trees,
    harnesses: new HarnessShelf(backend, config, log),
    tools,
    archives: config.images.archives,
    roots: path.join(directory, "roots"),
    scratch: path.join(config.place.directory, "scratch"),
  });
  await places.sweep();
  log.warn({ event: "place.chosen", place: "chroot", canMount: tools.canMount, isBoundary: false });
  return places;
}
