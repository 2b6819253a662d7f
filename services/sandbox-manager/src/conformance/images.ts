/** Root file systems from images, and workspaces that are part of them. */
import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Image, Sandbox, Tree } from "../backend/types.js";
import { DIFF_LIMITS, file, type Kit, listed } from "./kit.js";
import { SMALL_LAYERS, savedImage } from "./saved-image.js";

const WORKDIR = "/srv/testbed";
/** The image's own PATH counts. */
const asRoot = { user: "root", environment: {} } as const;

export function describeImages(kit: Kit): void {
  describe.skipIf(!kit.can.images)("an image", () => {
    let path: string;
    let image: Image;
    let inside: Tree;

    beforeAll(async () => {
      path = await savedImage(SMALL_LAYERS);
      image = await kit.backend.prepareImage({ kind: "local", path });
      inside = await kit.backend.readTree(image, WORKDIR);
    });
    afterAll(() => rmSync(path, { force: true }));

    const create = (): Promise<Sandbox> => kit.create({ image, workspace: inside, workdir: WORKDIR });

    test("says what it is made of", () => {
      expect(image.kind).toBe("local");
      expect(image.digest).toMatch(/^[0-9a-f]{64}$/);
      expect(image.defaults.workdir).toBe(WORKDIR);
      expect(image.defaults.environment).toMatchObject({ GREETING: "hello = there" });
    });

    test("is the root file system, with its owners, modes and environment", async () => {
      const { directoryAttributes, rootAttributes = directoryAttributes } = kit.can;
      const sandbox = await create();
      expect(await kit.output(sandbox, 'echo "$GREETING"; pwd', asRoot)).toBe(`hello = there\n${WORKDIR}\n`);
      expect(await kit.output(sandbox, "stat -c '%a %u %g' / /srv /srv/testbed /srv/shared", asRoot)).toBe(
        `${rootAttributes ? "711" : "755"} 0 0\n${directoryAttributes ? "751 0 3" : "755 0 0"}\n755 0 0\n1777 7 8\n`,
      );
      expect(await kit.output(sandbox, "cat /etc/issue; ls /srv/old", asRoot)).toBe("second\nnew\n");
    });

    test("has what programs expect below /dev, /proc and /etc", async () => {
      const sandbox = await create();
      const script = `echo x > /dev/null && head -c 3 /dev/zero | wc -c && test -e /dev/ptmx && test -d /dev/pts &&
        echo y > /dev/shm/y && cat /proc/self/comm && grep -c localhost /etc/hosts && id -un`;
      expect(await kit.output(sandbox, script, { environment: {} })).toMatch(/^3\ncat\n[12]\nagent\n$/);
      expect(await kit.output(sandbox, "id -un", asRoot)).toBe("root\n");
    });

    test("shows its files as a tree, without its history", async () => {
      expect([...inside.entries.values()].map(({ path, kind, mode }) => [path, kind, mode])).toEqual([
        ["README", "file", 0o644],
        ["bin/run", "file", 0o755],
        ["both/file", "file", 0o644],
        ["lib/a", "file", 0o644],
        ["lib/b", "file", 0o644],
        ["link", "symlink", 0o777],
        ["over", "file", 0o644],
      ]);
      expect(inside.directory).toBeUndefined();
      expect(await kit.backend.readTree(image, WORKDIR)).toEqual(inside);
      await expect(kit.backend.readTree(image, "/srv/none")).rejects.toThrow(/no such directory/);
      await expect(kit.backend.readTree(image, "/srv/alias/lib")).rejects.toThrow(/symbolic link/);
    });

    test("gives the change of a workspace that is part of it", async () => {
      const sandbox = await create();
      const script = [
        "echo more >> README",
        "rm lib/a",
        "rm -r both && mkdir both && echo new > both/other",
        "rm over && mkdir over && echo in > over/file",
        "rm link && echo file > link",
        "chmod -x bin/run",
        "mkdir added && echo a > added/file",
        "echo outside > /srv/elsewhere",
      ];
      await kit.output(sandbox, script.join(" && "), asRoot);
      await sandbox.quiesce();
      const patch = await sandbox.diff(DIFF_LIMITS);
      expect(patch.base).toBe(inside.digest);
      expect(listed(patch)).toEqual([
        ["README", "file", 0o644, "read me\nmore\n"],
        ["added/file", "file", 0o644, "a\n"],
        ["bin/run", "file", 0o644, "#!/bin/sh\n"],
        ["both/file", "deleted"],
        ["both/other", "file", 0o644, "new\n"],
        ["lib/a", "deleted"],
        ["link", "file", 0o644, "file\n"],
        ["over", "deleted"],
        ["over/file", "file", 0o644, "in\n"],
      ]);
      const again = await kit.create({ image, workspace: inside, workdir: WORKDIR, patch });
      expect(await kit.output(again, "cat README over/file both/other; ls lib", asRoot)).toBe(
        "read me\nmore\nin\nnew\nb\n",
      );
      await again.quiesce();
      expect(await again.diff(DIFF_LIMITS)).toEqual(patch);
    });

    test.each([
      ["removed", `rm -r ${WORKDIR}`, []],
      ["replaced by a link", `mv ${WORKDIR} /srv/moved && ln -s /srv/moved ${WORKDIR}`, []],
      [
        "made anew",
        `rm -r ${WORKDIR} && mkdir ${WORKDIR} && echo a > ${WORKDIR}/lib`,
        [["lib", "file", 0o644, "a\n"]],
      ],
      ["gone with what is above it", "rm -r /srv && echo x > /srv", []],
    ])("notices that the whole workspace was %s", async (_, script, added) => {
      const sandbox = await create();
      await kit.output(sandbox, script, { ...asRoot, cwd: "/" });
      await sandbox.quiesce();
      const seen = listed(await sandbox.diff(DIFF_LIMITS));
      expect(seen.filter(([, kind]) => kind !== "deleted")).toEqual(added);
      expect(seen.filter(([, kind]) => kind === "deleted").map(([name]) => name)).toEqual([
        ...inside.entries.keys(),
      ]);
    });

    test("keeps its directories when a task's files are laid into it", async () => {
      const workspace = await kit.backend.prepareTree({ kind: "files", files: [file("lib/task", "task\n")] });
      const sandbox = await kit.create({ image, workspace, workdir: WORKDIR });
      expect(await kit.output(sandbox, "stat -c '%a %u %g' /srv; cat lib/task lib/b", asRoot)).toBe(
        `${kit.can.directoryAttributes ? "751 0 3" : "755 0 0"}\ntask\nb\n`,
      );
      await kit.output(sandbox, "echo mine >> lib/task", { environment: {} });
      await sandbox.quiesce();
      expect(listed(await sandbox.diff(DIFF_LIMITS))).toEqual([["lib/task", "file", 0o644, "task\nmine\n"]]);
    });

    test.skipIf(kit.can.snapshots === false)(
      "is the base of a snapshot, which has a tree of its own",
      async () => {
        const template = await create();
        await kit.output(template, "rm lib/a; echo 2 > lib/b; echo s > set-up", asRoot);
        const snapshot = await kit.snapshot(template);
        const now = await kit.backend.readTree(snapshot, WORKDIR);
        expect([...now.entries.keys()]).toEqual([
          "README",
          "bin/run",
          "both/file",
          "lib/b",
          "link",
          "over",
          "set-up",
        ]);
        const changes = async (workspace: Tree) => {
          const fork = await kit.create({ image: snapshot, workspace, workdir: WORKDIR });
          await kit.output(fork, "rm set-up; echo 3 > lib/c", asRoot);
          await fork.quiesce();
          return listed(await fork.diff(DIFF_LIMITS));
        };
        expect(await changes(now)).toEqual([
          ["lib/c", "file", 0o644, "3\n"],
          ["set-up", "deleted"],
        ]);
        expect(await changes(inside)).toEqual([
          ["lib/a", "deleted"],
          ["lib/b", "file", 0o644, "2\n"],
          ["lib/c", "file", 0o644, "3\n"],
        ]);
      },
    );
  });

  describe.skipIf(kit.can.images)("an image", () => {
    test("is refused where there are none", async () => {
      await expect(kit.backend.prepareImage({ kind: "local", path: "/image.tar" })).rejects.toThrow(
        /MORTISE_SANDBOX_BACKEND|has no images/,
      );
      await expect(kit.backend.readTree(kit.image, "/srv")).rejects.toThrow(/has no images/);
    });
  });
}
