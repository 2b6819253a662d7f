/** Owns asking every known harness's reader whether a call is its own; the first that knows it answers. */
import { readClaudeCode } from "./claude-code.js";
import { readCodex } from "./codex.js";
import { readGeneric } from "./generic.js";
import { readOpenCode } from "./opencode.js";
import { readPi } from "./pi.js";
import type { CallFacts, CallSignals, SignalReader } from "./types.js";

const READERS: readonly SignalReader[] = [readClaudeCode, readOpenCode, readCodex, readPi];

export function readSignals(facts: CallFacts): CallSignals {
  for (const read of READERS) {
    const signals = read(facts);
    if (signals) return signals;
  }
  return readGeneric(facts);
}
