/**
 * Owns the container of a helper: which rights it has on the engine's host, the volume it shares with the engine, and its
 * program. Does not speak with it.
 *
 * The helper sees the host's processes and enters network namespaces of sandboxes; so it has what that needs and nothing
 * else. Whoever may use the engine's API is root on its host anyway: the helper adds no right that was not there, and
 * nothing inside a sandbox sees it.
 */
import type { Duplex } from "node:stream";
import type Docker from "dockerode";
import { OWNER_LABEL } from "../engine.js";
import { attach } from "./attached.js";
import { HELPER_PROGRAM, helperCode } from "./helper-code.js";

/** Where the volume is in the helper. */
export const SHARED = "/mortise/shared";
const CAPABILITIES = [
  // Entering namespaces, of networks and of the engine's mounts, and looking through /proc at what they belong to.
  "SYS_ADMIN",
  "SYS_CHROOT",
  "SYS_PTRACE",
  // Addresses and rules of an allow-list.
  "NET_ADMIN",
  "KILL",
  // Files of sandboxes, for whoever they are.
  "CHOWN",
  "DAC_OVERRIDE",
  "DAC_READ_SEARCH",
  "FOWNER",
  "FSETID",
];

export interface HelperContainer {
  readonly container: Docker.Container;
  readonly streams: Duplex;
  readonly errors: () => string;
  /** Where the engine finds the volume. */
  readonly mountpoint: string;
}

/** Starts one. @param image the host image, by its name at the engine */
export async function startHelper(docker: Docker, owner: string, image: string): Promise<HelperContainer> {
  const labels = { [OWNER_LABEL]: owner };
  const volume = `mortise-${owner}`;
  await docker.createVolume({ Name: volume, Labels: labels });
  const { Mountpoint: mountpoint } = await docker.getVolume(volume).inspect();
  const container = await docker.createContainer({
    Image: image,
    Entrypoint: ["/usr/bin/node"],
    Cmd: [HELPER_PROGRAM, SHARED],
    Env: ["PATH=/usr/bin:/bin"],
    User: "0:0",
    WorkingDir: "/",
    Labels: { ...labels, "io.mortise.helper": "" },
    OpenStdin: true,
    // Its end follows that of whoever started it.
    StdinOnce: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Healthcheck: { Test: ["NONE"] },
    HostConfig: {
      PidMode: "host",
      NetworkMode: "host",
      CgroupnsMode: "host",
      CapDrop: ["ALL"],
      CapAdd: CAPABILITIES,
      SecurityOpt: ["apparmor=unconfined", "label=disable", "no-new-privileges"],
      AutoRemove: true,
      LogConfig: { Type: "none", Config: {} },
      Mounts: [
        { Type: "volume", Source: volume, Target: SHARED },
        { Type: "bind", Source: "/sys/fs/cgroup", Target: "/sys/fs/cgroup", ReadOnly: true },
      ],
    } as Docker.HostConfig,
  });
  try {
    await container.putArchive(Buffer.from(await helperCode()), { path: "/" });
    const attached = await attach(container);
    await container.start();
    return { container, mountpoint, ...attached };
  } catch (error) {
    await container.remove({ force: true, v: true }).catch(() => undefined);
    throw error;
  }
}
