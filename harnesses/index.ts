/** Owns the list of harnesses Mortise has an adapter for, and where each one's folder is. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { MortiseError } from "@mortise/contracts";
import type { HarnessAdapter } from "@mortise/harness";
import { claudeCode } from "./claude-code/adapter.js";
import { codex } from "./codex/adapter.js";
import { mini } from "./mini/adapter.js";
import { miniSweAgent } from "./mini-swe-agent/adapter.js";
import { opencode } from "./opencode/adapter.js";
import { openhands } from "./openhands/adapter.js";
import { pi } from "./pi/adapter.js";

export const HARNESSES: readonly HarnessAdapter[] = [
  mini,
  claudeCode,
  opencode,
  codex,
  pi,
  openhands,
  miniSweAgent,
];

/** @throws MortiseError MORTISE_HARNESS_UNKNOWN */
export function harnessNamed(name: string): HarnessAdapter {
  const found = HARNESSES.find((adapter) => adapter.name === name);
  if (found) return found;
  throw new MortiseError({
    code: "MORTISE_HARNESS_UNKNOWN",
    message: `There is no adapter for ${JSON.stringify(name)}.`,
    fix: `Use one of: ${HARNESSES.map((adapter) => adapter.name).join(", ")}.`,
    detail: { field: "harness" },
  });
}

/** A harness's own folder; compiled or not, this file lies beside or one below them. */
export function harnessFolder(name: string): string {
  const here = dirname(fileURLToPath(import.meta.url));
  return join(here.endsWith("dist") ? dirname(here) : here, name);
}
