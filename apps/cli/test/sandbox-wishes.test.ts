/** What a run asks of its sandboxes, against what its site gives. */
import { RunConfig, SiteConfig } from "@mortise/contracts";
import { expect, test } from "vitest";
import { assertSandboxWishes } from "../src/sandbox-wishes.js";

const place = { directory: "/x" };
const site = SiteConfig.parse({
  nats: { url: "nats://x" },
  identity: place,
  state: place,
  tasks: place,
  harness: { mini: { adapter: "mini" } },
  sandbox: { shared: { data: "/srv/data" }, maxScratchBytes: 10_000 },
});
const checked = (rollout: object) => () =>
  assertSandboxWishes(site, RunConfig.parse({ run: { id: "r" }, policy: { checkpoint: "/c" }, rollout }));
const scratch = (...sizes: number[]) => sizes.map((bytes, at) => ({ target: `/s${at}`, bytes }));

test("what the site gives may be asked for", () => {
  expect(
    checked({ mounts: [{ name: "data", target: "/data" }], scratch: scratch(5000, 5000) }),
  ).not.toThrow();
});

test.each([
  [{ harness: "nope" }, "MORTISE_HARNESS_UNKNOWN", "rollout.harness", "the site file has mini"],
  [
    { mounts: [{ name: "toString", target: "/data" }] },
    "MORTISE_CONFIG_INVALID",
    "rollout.mounts.0.name",
    "sandbox.shared has data",
  ],
  [{ scratch: scratch(5000, 5001) }, "MORTISE_CONFIG_INVALID", "rollout.scratch", "10001 bytes together"],
])("%j is refused by its field", (rollout, code, field, words) => {
  const asked = checked(rollout);
  expect(asked).toThrow(words);
  expect(asked).toThrow(expect.objectContaining({ code, detail: { field } }));
});
