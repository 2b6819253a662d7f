/** What a remote runtime may hand back as a change, and how a site file may name one. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { RemoteHarness } from "@mortise/contracts";
import { systemClock } from "@mortise/kernel";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TreeStore } from "../../src/backend/tree-store.js";
import type { Tree } from "../../src/backend/types.js";
import { encodePatch } from "../../src/patch/codec.js";
import type { Patch, PatchEntry } from "../../src/patch/patch.js";
import { packTar } from "../../src/patch/tar.js";
import { changeOf } from "../../src/remote/change.js";
import { RemoteHarnesses } from "../../src/remote/remote-harnesses.js";
import { failure } from "./answers.js";

const LIMITS = { maxFileBytes: 100, maxTotalBytes: 150 };
let scratch: string;
let tree: Tree;
beforeAll(() => {
  scratch = mkdtempSync(path.join(tmpdir(), "mortise-change-"));
  const file = (name: string, text: string) => ({
    path: name,
    isExecutable: false,
    content: Buffer.from(text),
  });
  tree = new TreeStore(path.join(scratch, "trees"), undefined).put({
    kind: "files",
    files: [file("a.txt", "a"), file("src/b.txt", "b")],
  });
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const file = (name: string, text: string): PatchEntry => ({
  kind: "file",
  path: name,
  mode: 0o644,
  content: Buffer.from(text),
});

async function handedBack(entries: readonly PatchEntry[], changes: Partial<Patch> = {}) {
  const bytes = await encodePatch({ base: tree.digest, entries, skipped: [], ...changes });
  return changeOf({ patch: Buffer.from(bytes).toString("base64") }, tree, LIMITS);
}

test("it becomes what a change taken here is: sorted, without what is as it was", async () => {
  const patch = await handedBack([
    file("z.txt", "new"),
    file("a.txt", "a"),
    { kind: "deleted", path: "never.txt" },
    { kind: "deleted", path: "src/b.txt" },
    { kind: "symlink", path: "link", target: "a.txt" },
  ]);
  expect(patch!.entries.map(({ kind, path: name }) => [kind, name])).toEqual([
    ["symlink", "link"],
    ["deleted", "src/b.txt"],
    ["file", "z.txt"],
  ]);
  expect(await changeOf({}, tree, LIMITS)).toBeUndefined();
});

test("what is larger than the trial's own limits is left out by name", async () => {
  const patch = await handedBack([
    file("big", "x".repeat(101)),
    file("one", "x".repeat(90)),
    file("two", "x".repeat(90)),
  ]);
  expect(patch!.entries.map(({ path: name }) => name)).toEqual(["one"]);
  expect(patch!.skipped).toEqual([
    { path: "big", reason: "over-limit" },
    { path: "two", reason: "over-limit" },
  ]);
});

test.each<[string, readonly PatchEntry[]]>([
  ["a path out of the work tree", [file("../evil", "x")]],
  ["an absolute path", [file("/etc/passwd", "x")]],
  ["a repository's own files", [file(".git/hooks/pre-commit", "x")]],
  ["a link out of the work tree", [{ kind: "symlink", path: "link", target: "../../etc" }]],
  ["an entry below another", [file("d", "x"), file("d/e", "x")]],
])("with %s it is refused whole", async (_name, entries) => {
  expect(await failure(handedBack(entries))).toMatchObject({
    code: "MORTISE_HARNESS_REMOTE_ANSWER",
    message: expect.stringContaining("the change"),
  });
});

test("taken against another tree, or no patch at all, it is refused", async () => {
  expect(await failure(handedBack([], { base: "0".repeat(64) }))).toMatchObject({
    code: "MORTISE_HARNESS_REMOTE_ANSWER",
    message: expect.stringContaining(tree.digest),
  });
  const other = await packTar([{ name: "x", kind: "file", mode: 0o644, content: Buffer.from("x") }]);
  for (const bytes of [other, Buffer.from("no tar at all")])
    expect(
      await failure(changeOf({ patch: Buffer.from(bytes).toString("base64") }, tree, LIMITS)),
    ).toMatchObject({ code: "MORTISE_HARNESS_REMOTE_ANSWER" });
});

test.each<[string, Record<string, unknown>, string]>([
  ["http over a network", { url: "http://runtime.example" }, "url"],
  ["a model over plain http", { modelUrl: "http://proxy.example:8080" }, "modelUrl"],
  ["credentials in the URL", { url: "https://user:secret@runtime.example" }, "credentials"],
  ["a token file that is not there", { tokenFile: "/nowhere/token" }, "tokenFile"],
])("a site file with %s is refused at the start", (_name, changes, words) => {
  const harness = RemoteHarness.parse({
    remote: { protocol: "a2a", url: "https://runtime.example", ...changes },
  });
  expect(() => new RemoteHarnesses({ harness: { x: harness } }, systemClock)).toThrow(
    new RegExp(`harness\\.x\\.remote\\..*${words}`, "s"),
  );
});

test("a token others can read is refused, and so is an empty one; plain http can be allowed", () => {
  const made = (changes: Record<string, unknown>) => {
    const remote = { protocol: "agentcore", url: "http://runtime.example", plainHttp: true, ...changes };
    return new RemoteHarnesses({ harness: { x: RemoteHarness.parse({ remote }) } }, systemClock);
  };
  const tokenFile = path.join(scratch, "token");
  writeFileSync(tokenFile, "t", { mode: 0o644 });
  expect(() => made({ tokenFile })).toThrow(/0600/);
  rmSync(tokenFile);
  writeFileSync(tokenFile, "\n", { mode: 0o600 });
  expect(() => made({ tokenFile })).toThrow(/holds no token/);
  writeFileSync(tokenFile, "t");
  expect(made({ tokenFile }).get("x")?.agent.protocol).toBe("agentcore");
});
