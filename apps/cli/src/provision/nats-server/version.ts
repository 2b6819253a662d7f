/**
 * Owns what counts as a usable NATS server: 2.12 or newer, read from a binary or from a running server.
 * Does not own where servers come from (see sources).
 */
import { connect } from "node:net";
import { MortiseError } from "@mortise/contracts";
import { run } from "../command.js";

export const MINIMUM = "2.12";
const GREETING_TIMEOUT_MS = 5_000;

/** "nats-server: v2.15.2" or "2.15.1-1" → "2.15.2"; undefined when there is no version in it. */
export function parseVersion(text: string): string | undefined {
  return /\bv?(\d+\.\d+(?:\.\d+)?)/.exec(text)?.[1];
}

/** True from 2.12 on. */
export function isUsable(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [majorMin = 0, minorMin = 0] = MINIMUM.split(".").map(Number);
  return major > majorMin || (major === majorMin && minor >= minorMin);
}

/** Asks a binary for its version. Rejects when it is not a nats-server. */
export async function binaryVersion(path: string): Promise<string> {
  const { stdout } = await run(path, ["--version"], { timeoutMs: 10_000 });
  const version = stdout.startsWith("nats-server") ? parseVersion(stdout) : undefined;
  if (version === undefined) throw new Error(`${path} does not answer as a nats-server`);
  return version;
}

export interface Greeting {
  readonly version: string;
  readonly jetstream: boolean;
}

/** Reads the INFO line a NATS server sends to whoever connects; no credentials are needed for it. */
export function readGreeting(url: string): Promise<Greeting> {
  const { hostname, port } = parseUrl(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port });
    const fail = (reason: string, cause?: unknown) => {
      socket.destroy();
      reject(unreachable(url, reason, cause));
    };
    let received = "";
    socket.setTimeout(GREETING_TIMEOUT_MS, () => fail(`no greeting within ${GREETING_TIMEOUT_MS / 1000} s`));
    socket.setEncoding("utf8");
    socket.once("error", (error) => fail(error.message, error));
    socket.once("end", () => fail("the connection was closed without a greeting"));
    socket.on("data", (chunk: string) => {
      received += chunk;
      const end = received.indexOf("\r\n");
      if (end < 0) return;
      socket.removeAllListeners("end");
      try {
        if (!received.startsWith("INFO ")) throw new SyntaxError("the first line is not INFO");
        const info = JSON.parse(received.slice("INFO ".length, end)) as {
          version: string;
          jetstream?: boolean;
        };
        socket.destroy();
        resolve({ version: info.version, jetstream: info.jetstream === true });
      } catch (error) {
        fail("what answers there is not a NATS server", error);
      }
    });
  });
}

function parseUrl(url: string): { hostname: string; port: number } {
  const withScheme = url.includes("://") ? url : `nats://${url}`;
  if (!URL.canParse(withScheme)) {
    throw new MortiseError({
      code: "MORTISE_CONFIG_INVALID",
      message: "NATS_URL is not an address",
      fix: "Give it as nats://host:port.",
      detail: { field: "NATS_URL" },
    });
  }
  const { hostname, port } = new URL(withScheme);
  return { hostname, port: port === "" ? 4222 : Number(port) };
}

function unreachable(url: string, reason: string, cause: unknown): MortiseError {
  const { hostname, port } = parseUrl(url);
  return new MortiseError({
    code: "MORTISE_TRANSPORT_UNAVAILABLE",
    message: `NATS_URL names ${hostname}:${port}: ${reason}.`,
    fix: "Start that server, correct NATS_URL, or unset it to have one started.",
    detail: { field: "NATS_URL" },
    ...(cause === undefined ? {} : { cause }),
  });
}
