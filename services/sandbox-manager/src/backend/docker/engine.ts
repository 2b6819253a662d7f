/**
 * Owns which Docker engine is spoken to, and what every call to it needs: progress followed to its end, answers that
 * mean "gone already". Does not know images or sandboxes.
 */
import type { Readable } from "node:stream";
import type Docker from "dockerode";

/** Containers and images made here carry it, with the mark of the state directory as value. */
export const OWNER_LABEL = "io.mortise.owner";

const UNIX = "unix://";
const DEFAULT_SOCKET = "/var/run/docker.sock";

export type EngineAddress =
  | { readonly ok: true; readonly socketPath: string }
  | { readonly ok: false; readonly reason: string };

/** The engine of this host. One elsewhere is refused: what it starts has no namespace that we could enter. */
export function engineAddress(
  socketPath: string | undefined,
  environment: NodeJS.ProcessEnv = process.env,
): EngineAddress {
  if (socketPath !== undefined) return { ok: true, socketPath };
  const host = environment.DOCKER_HOST ?? "";
  if (host === "") return { ok: true, socketPath: DEFAULT_SOCKET };
  if (host.startsWith(UNIX)) return { ok: true, socketPath: host.slice(UNIX.length) };
  return {
    ok: false,
    reason: `DOCKER_HOST is ${host}: only the engine of this host can be used, through its Unix socket`,
  };
}

/** Waits until a pull, load or import has ended. Rejects with the engine's own words. */
export function followed(docker: Docker, progress: NodeJS.ReadableStream): Promise<ProgressLine[]> {
  return new Promise((resolve, reject) => {
    docker.modem.followProgress(progress as Readable, (error: Error | null, lines: ProgressLine[]) =>
      error === null ? resolve(lines) : reject(error),
    );
  });
}

export interface ProgressLine {
  readonly stream?: string;
  readonly status?: string;
}

/** A container or image that is gone or has ended already is what was wanted. */
export function ignoreMissing(error: { statusCode?: number }): void {
  if (error.statusCode !== 404 && error.statusCode !== 409) throw error;
}
