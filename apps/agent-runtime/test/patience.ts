/** What waits for real processes waits as long as a busy machine needs. */
import { expect, vi } from "vitest";

const PATIENCE_MS = 240_000;
/** An agent gets this long to do its first step before its limit ends it: starting Node can take seconds. */
export const SHORT_LIMIT_MS = 15_000;

vi.setConfig({ testTimeout: PATIENCE_MS, hookTimeout: PATIENCE_MS });

export const eventually = <T>(look: () => T | Promise<T>) => expect.poll(look, { timeout: PATIENCE_MS / 2 });
