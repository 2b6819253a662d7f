/**
 * Owns which Docker engine is spoken to and how, and what every call to it needs: progress followed to its end, answers
 * that mean "gone already". Does not know images or sandboxes.
 */
import type { Readable } from "node:stream";
import type { DockerEngine } from "@mortise/contracts";
import Docker from "dockerode";
import { readTrust, type Trust } from "./engine-trust.js";

/** Containers, images and volumes made here carry it, with the mark of the state directory as value. */
export const OWNER_LABEL = "io.mortise.owner";

const UNIX = "unix://";
const DEFAULT_SOCKET = "/var/run/docker.sock";

/** `sandbox.docker`, or a part of it. */
export type EngineSettings = Partial<DockerEngine>;

export type EngineAddress =
  /** Of this host: what it starts has namespaces and files we can enter. */
  | { readonly ok: true; readonly kind: "local"; readonly socketPath: string }
  /** Elsewhere, or as if: only its API is used. */
  | {
      readonly ok: true;
      readonly kind: "remote";
      readonly host: string;
      readonly port: number;
      /** Absent: plain TCP, which the site allows. */
      readonly trust?: Trust;
    }
  | { readonly ok: false; readonly reason: string };

/** The engine the site names, else the one of this host that the environment names. */
export function engineAddress(
  settings: EngineSettings = {},
  environment: NodeJS.ProcessEnv = process.env,
): EngineAddress {
  const { host } = settings;
  if (host === undefined) return fromEnvironment(environment.DOCKER_HOST ?? "");
  if (host.startsWith(UNIX)) return { ok: true, kind: "local", socketPath: host.slice(UNIX.length) };
  const { hostname, port, protocol } = new URL(host);
  const place = { kind: "remote", host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) } as const;
  if (protocol !== "tcp:" || port === "")
    return {
      ok: false,
      reason: `sandbox.docker.host is ${host}: it must be unix:///path or tcp://host:port`,
    };
  if (settings.tls === undefined) {
    if (settings.allowPlainTcp) return { ok: true, ...place };
    return {
      ok: false,
      reason: `sandbox.docker.host is ${host} and sandbox.docker.tls is absent: whoever reaches that port is root on its host; give certificates, or set sandbox.docker.allowPlainTcp`,
    };
  }
  const trust = readTrust(settings.tls);
  return trust.ok ? { ok: true, ...place, trust: trust.trust } : trust;
}

/** No address of another host comes out of the environment: that is the site's to say, with its certificates. */
function fromEnvironment(host: string): EngineAddress {
  if (host === "") return { ok: true, kind: "local", socketPath: DEFAULT_SOCKET };
  if (host.startsWith(UNIX)) return { ok: true, kind: "local", socketPath: host.slice(UNIX.length) };
  return {
    ok: false,
    reason: `DOCKER_HOST is ${host}: an engine that is not behind a Unix socket of this host is named in sandbox.docker.host, with sandbox.docker.tls`,
  };
}

/** A client; one that reaches nothing where there is no address. What the environment says does not count. */
export function connectEngine(address: EngineAddress): Docker {
  const nothing = { host: undefined, port: undefined, socketPath: undefined };
  const without = { ca: undefined, cert: undefined, key: undefined };
  if (!address.ok) return new Docker({ ...nothing, ...without, socketPath: "/nonexistent" });
  if (address.kind === "local") return new Docker({ ...nothing, ...without, socketPath: address.socketPath });
  const { host, port, trust } = address;
  return new Docker({
    ...nothing,
    ...without,
    host,
    port,
    protocol: trust === undefined ? "http" : "https",
    ...trust,
  });
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
