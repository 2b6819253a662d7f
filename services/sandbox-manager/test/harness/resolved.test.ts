/** What a site file says of a harness: adapters by their names, commands as before, and refusals that help. */
import { HARNESS_ADAPTERS, SiteConfig } from "@mortise/contracts";
import { HARNESSES } from "@mortise/harnesses";
import { parseStrict } from "@mortise/kernel";
import { expect, test } from "vitest";
import { resolveHarness } from "../../src/harness/resolved.js";

const elsewhere = { directory: "/somewhere" };
const site = { nats: { url: "nats://x" }, identity: elsewhere, state: elsewhere, tasks: elsewhere };
const parsed = (harness: object) =>
  parseStrict(SiteConfig, { ...site, harness: { agent: harness } }, { source: "site.toml" }).harness.agent!;

test("the site file knows every adapter and no other", () => {
  expect([...HARNESS_ADAPTERS].sort()).toEqual(HARNESSES.map(({ name }) => name).sort());
});

test("an adapter brings its version, its first model API and its folder", () => {
  const resolved = resolveHarness("agent", parsed({ adapter: "opencode", contextTokens: 65_536 }));
  expect(resolved).toMatchObject({
    name: "agent",
    isInstalled: false,
    wireApi: "chat",
    contextTokens: 65_536,
  });
  expect(resolved.adapter.name).toBe("opencode");
  expect(resolved.folder).toMatch(/\/harnesses\/opencode$/);
});

test("a command is what the site file says", () => {
  const given = parsed({
    directory: "/opt/agent",
    argv: ["node", "{runtime}/a.cjs"],
    exitCodes: { 6: "turn-limit" },
  });
  const { adapter, isInstalled, folder } = resolveHarness("agent", given);
  expect({ isInstalled, folder, version: adapter.version }).toEqual({
    isInstalled: true,
    folder: "/opt/agent",
    version: "unknown",
  });
  expect(adapter.ending({ exitCode: 6, stdout: "", stderr: "" }).kind).toBe("turn-limit");
});

test("an adapter nobody knows is refused with the nearest name", () => {
  expect(() => parsed({ adapter: "claude-cod" })).toThrow(
    /harness\.agent\.adapter = "claude-cod": .*; did you mean claude-code\?/,
  );
});

test("a key of the other form is refused where it stands", () => {
  expect(() => parsed({ adapter: "mini", argv: ["node"] })).toThrow(/unknown key harness\.agent\.argv/);
});

test("a model API the harness does not speak is refused with those it does", () => {
  expect(() => resolveHarness("agent", parsed({ adapter: "codex", wireApi: "chat" }))).toThrow(
    /harness\.agent\.wireApi is chat; this harness speaks responses/,
  );
});
