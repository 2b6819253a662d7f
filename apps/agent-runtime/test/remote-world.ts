/** A real sandbox-manager whose harness runs in a remote runtime, and what tests of such trials share. */
import { mkdirSync } from "node:fs";
import path from "node:path";
import type { SandboxReport } from "@mortise/contracts";
import { ManagerWorld } from "../../../services/sandbox-manager/test/manager-world.js";

export type Protocol = "a2a" | "agentcore";

export interface RemoteTable {
  readonly name: string;
  readonly protocol: Protocol;
  readonly url: string;
  readonly tokenFile?: string;
  /** More keys. */
  readonly more?: string;
}

/** TOML of a harness that runs elsewhere; it is called `scripted` there. */
export function remoteTable({ name, protocol, url, tokenFile, more = "" }: RemoteTable): string {
  return `
[harness.${name}.remote]
protocol = "${protocol}"
url = "${url}"
harness = "scripted"
pollIntervalMs = 100
startTimeoutMs = 5000
reattachTimeoutMs = 5000
${tokenFile === undefined ? "" : `tokenFile = "${tokenFile}"`}
${more}
`;
}

export async function startWorld(directory: string, tables: readonly RemoteTable[]): Promise<ManagerWorld> {
  mkdirSync(directory, { recursive: true });
  return ManagerWorld.start({
    directory,
    backend: "process",
    sandbox: tables.map(remoteTable).join(""),
  });
}

export function failureOf({ fact }: SandboxReport) {
  if (fact.case !== "failed") throw new Error(`it reported ${JSON.stringify(fact.case)}`);
  return { code: fact.value.code, reason: fact.value.reason };
}

/** Whatever is launched at a remote runtime here allows it. */
export const ALLOWED = { allowUnproven: true };

export function stateOf(directory: string): string {
  return path.join(directory, "state");
}
