/** Why an image cannot run a harness is said in words that tell what to change. */
import type { ElfNeeds } from "@mortise/harness";
import { expect, test } from "vitest";
import { type Place, unfitness } from "../../src/harness/fit.js";

const LOADER = "/lib64/ld-linux-x86-64.so.2";
const libraries = ["libc.so.6", "librt.so.1"];
const glibc: Place = { musl: false, glibc: "2.36", missing: [] };
const wants = (needs: ElfNeeds, programs: readonly string[] = []) => ({
  harness: "agent 1.0",
  path: "/usr/bin",
  binaries: new Map([["agent", needs]]),
  programs,
});

test.each<[string, ElfNeeds, Place, string | undefined]>([
  ["a new enough glibc will do", { loader: LOADER, glibc: [2, 25], libraries }, glibc, undefined],
  ["equal versions will do", { loader: LOADER, glibc: [2, 36], libraries }, glibc, undefined],
  [
    "a static program needs nothing",
    { loader: undefined, glibc: undefined, libraries: [] },
    { ...glibc, glibc: null },
    undefined,
  ],
  [
    "an older glibc is named with the one that is needed",
    { loader: LOADER, glibc: [2, 38], libraries },
    glibc,
    "agent needs glibc 2.38; the image has 2.36",
  ],
  [
    "minor versions are numbers, not text",
    { loader: LOADER, glibc: [2, 9], libraries },
    { ...glibc, glibc: "2.17" },
    undefined,
  ],
  [
    "a library that is not there is named",
    { loader: LOADER, glibc: [2, 17], libraries },
    { ...glibc, missing: ["librt.so.1"] },
    "agent loads librt.so.1, which the image does not have",
  ],
  [
    "musl is named",
    { loader: LOADER, glibc: [2, 17], libraries },
    { musl: true, glibc: null, missing: [LOADER] },
    `agent is started by ${LOADER}, which the image does not have; it has musl`,
  ],
  [
    "an image without any C library is named as that",
    { loader: LOADER, glibc: [2, 17], libraries },
    { musl: false, glibc: null, missing: [LOADER] },
    `agent is started by ${LOADER}, which the image does not have; it has no C library`,
  ],
])("%s", (_, needs, place, reason) => {
  expect(unfitness(wants(needs), place)).toBe(reason);
});

test("programs that neither image nor host has are named", () => {
  const place = { ...glibc, missing: ["bash", "rg"] };
  expect(
    unfitness(wants({ loader: undefined, glibc: undefined, libraries: [] }, ["bash", "git", "rg"]), place),
  ).toBe("neither the image nor this host has bash, rg, which its tools call");
});
