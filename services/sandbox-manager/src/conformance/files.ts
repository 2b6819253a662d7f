/** Files going in and coming out, and the change that is taken. */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { decodePatch, encodePatch } from "../patch/codec.js";
import { unpackTar } from "../patch/tar.js";
import { DIFF_LIMITS, file, type Kit, listed, MIB, tarOf, text } from "./kit.js";

const CHANGES = [
  "echo more >> src/a.js",
  "rm src/b.js",
  "chmod +x README.md",
  "mv docs papers",
  "rm run.sh && mkdir run.sh && echo in > run.sh/inside",
  "ln -s src/a.js link && ln -s ../../etc/passwd out && ln -s /etc/passwd absolute",
  "mkdir -p .git empty && echo ref > .git/HEAD",
  "echo same > same && cp same twin && ln twin hard",
  "cp src/a.js src/c.js && rm src/c.js",
].join(" && ");
const EXPECTED = [
  ["README.md", "file", 0o755, "read me\n"],
  ["docs/one/x.txt", "deleted"],
  ["docs/one/y.txt", "deleted"],
  ["hard", "file", 0o644, "same\n"],
  ["link", "symlink", "src/a.js"],
  ["papers/one/x.txt", "file", 0o644, "x\n"],
  ["papers/one/y.txt", "file", 0o644, "y\n"],
  ["run.sh", "deleted"],
  ["run.sh/inside", "file", 0o644, "in\n"],
  ["same", "file", 0o644, "same\n"],
  ["src/a.js", "file", 0o644, "export const a = 1;\nmore\n"],
  ["src/b.js", "deleted"],
  ["twin", "file", 0o644, "same\n"],
];

/** Paths no host call takes, names that are no text, a file of 1 TiB that takes no space; and one plain file. */
const UNREADABLE = `const fs = require("node:fs");
  fs.writeFileSync("a file", "x");
  fs.mkdirSync(Buffer.from([0x64, 0xff]));
  fs.writeFileSync(Buffer.from([0x64, 0xff, 0x2f, 0xfe]), "x");
  fs.closeSync(fs.openSync("z hole", "w")); fs.truncateSync("z hole", 2 ** 40);
  for (let depth = 0; depth < 30; depth++) { fs.mkdirSync("n".repeat(200)); process.chdir("n".repeat(200)); }`;

export function describeFiles(kit: Kit): void {
  async function changed(workdir?: string) {
    const sandbox = await kit.create(workdir === undefined ? {} : { workdir });
    expect((await kit.sh(sandbox, CHANGES)).outcome).toEqual({ kind: "exited", code: 0 });
    await sandbox.quiesce();
    return sandbox.diff(DIFF_LIMITS);
  }

  describe("files", () => {
    test("the diff is canonical, and says what it leaves out", async () => {
      const patch = await changed();
      expect(listed(patch)).toEqual(EXPECTED);
      expect(patch.skipped).toEqual([
        { path: ".git/HEAD", reason: "git-metadata" },
        { path: "absolute", reason: "symlink-leaves-workspace" },
        { path: "out", reason: "symlink-leaves-workspace" },
      ]);
      expect(patch.base).toBe(kit.workspace.digest);
    });

    test("the workspace can be anywhere", async () => {
      expect(await changed("/srv/deep/repository")).toEqual(await changed());
    });

    test("a patch applied to a fresh sandbox gives the same workspace and the same patch", async () => {
      const bytes = await encodePatch(await changed());
      const patch = await decodePatch(bytes);
      const fresh = await kit.create({ patch });
      const listing = await kit.sh(
        fresh,
        "cat src/a.js papers/one/x.txt run.sh/inside link; test ! -e docs/one/x.txt && test -x README.md && echo ok >> same",
      );
      expect(text(listing.stdout.bytes)).toBe(
        "export const a = 1;\nmore\nx\nin\nexport const a = 1;\nmore\n",
      );
      expect(listing.outcome).toEqual({ kind: "exited", code: 0 });
      await fresh.quiesce();
      const again = await fresh.diff(DIFF_LIMITS);
      const withoutSame = (entries: readonly { path: string }[]) =>
        entries.filter((entry) => entry.path !== "same");
      expect(withoutSame(again.entries)).toEqual(withoutSame(patch.entries));
    });

    test("two sandboxes of one tree do not see each other's changes", async () => {
      const [first, second] = [await kit.create(), await kit.create()];
      await kit.sh(first, "echo changed > README.md");
      expect(await kit.output(second, "cat README.md")).toBe("read me\n");
    });

    test("files above the limit are named, not carried", async () => {
      const sandbox = await kit.create();
      await kit.sh(sandbox, `node -e 'require("fs").writeFileSync("big", Buffer.alloc(2 << 20))'`);
      await sandbox.quiesce();
      const patch = await sandbox.diff(DIFF_LIMITS);
      expect(patch.entries).toEqual([]);
      expect(patch.skipped).toEqual([{ path: "big", reason: "over-limit" }]);
    });

    test("tar goes in and comes out", async () => {
      const sandbox = await kit.create();
      await sandbox.putTar("/workspace", await tarOf("in.txt", "put\n"));
      expect(await kit.output(sandbox, "cat in.txt && echo more >> in.txt && echo out > out.txt")).toBe(
        "put\n",
      );
      const members = await unpackTar(await sandbox.getTar("/workspace"), MIB);
      expect(members.find((member) => member.name === "out.txt")?.content.toString()).toBe("out\n");
      expect(members.find((member) => member.name === "in.txt")?.content.toString()).toBe("put\nmore\n");
    });

    test("what is put for root is root's to change, and nobody else's", async () => {
      const sandbox = await kit.create();
      if (!kit.can.isolation) return;
      await sandbox.putTar("/opt/of-root", await tarOf("in.txt", "put\n"), "root");
      const more = "echo more >> /opt/of-root/in.txt && cat /opt/of-root/in.txt";
      expect((await kit.sh(sandbox, more)).outcome).not.toEqual({ kind: "exited", code: 0 });
      const { outcome, stdout } = await kit.sh(sandbox, more, { user: "root" });
      expect(outcome).toEqual({ kind: "exited", code: 0 });
      expect(Buffer.from(stdout.bytes).toString()).toBe("put\nmore\n");
    });

    test("stored trees and directories of the host are mounted read-only", async () => {
      const hidden = await kit.backend.prepareTree({
        kind: "files",
        files: [file("secret.txt", "hidden\n")],
      });
      const sandbox = await kit.create({
        mounts: [
          { source: hidden, target: "/tests" },
          { source: import.meta.dirname, target: "/opt/runtime" },
        ],
      });
      const own = path.basename(import.meta.filename);
      const seen = await kit.output(sandbox, `cat /tests/secret.txt; ls /opt/runtime | grep "^${own}$"`);
      expect(seen).toBe(`hidden\n${own}\n`);
      if (kit.can.isolation)
        for (const user of ["agent", "root"] as const)
          expect((await kit.sh(sandbox, "echo x > /tests/new", { user })).outcome).not.toEqual({
            kind: "exited",
            code: 0,
          });
      await sandbox.quiesce();
      expect((await sandbox.diff(DIFF_LIMITS)).entries).toEqual([]);
    });

    test("a mount that has no directory is refused by name, and leaves nothing", async () => {
      const wrong = kit.create({ mounts: [{ source: "/no/such/directory", target: "/opt/runtime" }] });
      await expect(wrong).rejects.toThrow(/mount at \/opt\/runtime: "\/no\/such\/directory"/);
      await expect(kit.create({ workdir: "/a/../etc" })).rejects.toThrow(/workdir/);
    });

    test("the root file system can be looked at from the host, where there is one", async () => {
      const sandbox = await kit.create();
      if (sandbox.hostRoot === undefined) return;
      await kit.output(sandbox, "echo changed > README.md; echo here > /tmp/here");
      expect(readFileSync(path.join(sandbox.hostRoot, "workspace/README.md"), "utf8")).toBe("changed\n");
      expect(readFileSync(path.join(sandbox.hostRoot, "tmp/here"), "utf8")).toBe("here\n");
    });

    test("nothing an agent leaves makes its change unreadable", async () => {
      const sandbox = await kit.create();
      expect((await kit.run(sandbox, ["node", "-e", UNREADABLE])).outcome).toEqual({
        kind: "exited",
        code: 0,
      });
      await sandbox.quiesce();
      const { entries, skipped } = await sandbox.diff(DIFF_LIMITS);
      expect(entries.map((entry) => entry.path)).toEqual(["a file"]);
      const reasons = new Map(skipped.map(({ path: name, reason }) => [name.slice(0, 1), reason]));
      expect(Object.fromEntries(reasons)).toEqual({ d: "name-not-utf8", n: "over-limit", z: "over-limit" });
      // A hole is as long as it says: it must not become that much memory.
      await expect(sandbox.getTar("/workspace")).rejects.toThrow("holds too much to be packed");
    });

    test("links an agent planted lead the host nowhere", async () => {
      const sandbox = await kit.create();
      await kit.sh(sandbox, "rm -r docs && ln -s /etc docs && ln -s /etc/hostname src/host");
      // Docker resolves links inside the container; the others refuse them. Neither may touch the host.
      await sandbox.putTar("/workspace/docs", await tarOf("planted", "x")).catch(() => undefined);
      expect(existsSync("/etc/planted")).toBe(false);
      await sandbox.quiesce();
      const patch = await sandbox.diff(DIFF_LIMITS);
      expect(patch.entries.map((entry) => entry.path)).toEqual(["docs/one/x.txt", "docs/one/y.txt"]);
    });
  });
}
