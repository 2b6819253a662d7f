/** Owns the images of the tests: the helper's, one with programs of this machine, and the kit's small one. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { prepareHostImage } from "../../../services/sandbox-manager/dist/backend/host-image.js";
import { digestOf } from "../../../services/sandbox-manager/dist/conformance/tar-builder.js";
import type {
  BuiltLayer,
  RegistryServer,
} from "../../../services/sandbox-manager/test/images/registry-server.js";

export interface TestImages {
  readonly helper: string;
  readonly host: string;
}

/** Puts the images into a registry. @returns their references */
export function putImages(registry: RegistryServer, helper: string): TestImages {
  const scratch = mkdtempSync(path.join(tmpdir(), "mortise-images-"));
  try {
    const { location } = prepareHostImage(scratch);
    const program = layerOf(path.dirname(helper), [path.basename(helper)], "pod-helper");
    // Its idling part is also what a pod's first container does, which Kubernetes brings an image of its own for.
    registry.putImage("pod-helper", [program], { tag: "1", config: { Entrypoint: ["/pod-helper", "idle"] } });
    registry.putImage("host", [layerOf(location, ["."])], { tag: "1", config: {} });
    return { helper: `${registry.host}/pod-helper:1`, host: `${registry.host}/host:1` };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function layerOf(directory: string, names: readonly string[], as?: string): BuiltLayer {
  const argv = [
    "--numeric-owner",
    ...(as === undefined ? [] : [`--transform=s,.*,${as},`]),
    "-C",
    directory,
    "-c",
  ];
  const { stdout, status, stderr } = spawnSync("tar", [...argv, ...names], { maxBuffer: 1024 ** 3 });
  if (status !== 0) throw new Error(`tar: ${stderr}`);
  return { blob: stdout, diffId: digestOf(stdout), mediaType: "application/vnd.oci.image.layer.v1.tar" };
}
