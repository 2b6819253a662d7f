/** Sandboxes made from a sandbox. */
import { describe, expect, test } from "vitest";
import { DIFF_LIMITS, type Kit, listed } from "./kit.js";

export function describeSnapshots(kit: Kit): void {
  async function template() {
    const sandbox = await kit.create();
    await kit.output(sandbox, "rm src/b.js; mv docs papers; echo set up > state; echo one >> README.md");
    return kit.snapshot(sandbox);
  }

  describe.skipIf(kit.can.snapshots !== false)("a snapshot", () => {
    test("is refused where there are none, and the sandbox goes on", async () => {
      const sandbox = await kit.create();
      await expect(sandbox.snapshot()).rejects.toMatchObject({ code: "MORTISE_SANDBOX_BACKEND" });
      expect(await kit.output(sandbox, "echo on")).toBe("on\n");
    });
  });

  describe.skipIf(kit.can.snapshots === false)("a snapshot", () => {
    test("starts any number of sandboxes that do not see each other", async () => {
      const image = await template();
      const [first, second] = [await kit.create({ image }), await kit.create({ image })];
      await kit.output(first, "rm state; echo new > src/b.js; rm -r papers");
      expect(await kit.output(second, "cat state README.md papers/one/x.txt; ls src")).toBe(
        "set up\nread me\none\nx\na.js\n",
      );
      expect(await kit.output(first, "cat src/b.js; ls")).toBe("new\nREADME.md\nrun.sh\nsrc\n");
    });

    test("is part of the change against the task's files", async () => {
      const image = await template();
      const fork = await kit.create({ image });
      await kit.output(fork, "rm state; echo two >> README.md; echo new > src/b.js");
      await kit.output(
        fork,
        "rm -r papers; mkdir papers; echo p > papers/one; mkdir -p docs; echo d > docs/one",
      );
      await fork.quiesce();
      expect(listed(await fork.diff(DIFF_LIMITS))).toEqual([
        ["README.md", "file", 0o644, "read me\none\ntwo\n"],
        ["docs/one", "file", 0o644, "d\n"],
        ["docs/one/x.txt", "deleted"],
        ["docs/one/y.txt", "deleted"],
        ["papers/one", "file", 0o644, "p\n"],
        ["src/b.js", "file", 0o644, "new\n"],
      ]);
    });

    test("is the end of the sandbox it was taken from", async () => {
      const sandbox = await kit.create();
      await kit.snapshot(sandbox);
      await expect(kit.run(sandbox, ["true"])).rejects.toThrow(/snapshot/);
      await expect(sandbox.snapshot()).rejects.toThrow(/snapshot/);
    });

    test("can be taken of a sandbox made from one", async () => {
      const first = await template();
      const sandbox = await kit.create({ image: first });
      await kit.output(sandbox, "rm state; echo again > again");
      const second = await kit.snapshot(sandbox);
      await sandbox.destroy();
      await first.release();
      const fork = await kit.create({ image: second });
      expect(await kit.output(fork, "ls; cat again README.md")).toBe(
        "README.md\nagain\npapers\nrun.sh\nsrc\nagain\nread me\none\n",
      );
    });

    test("that is released lives on in what was made from it, and starts nothing more", async () => {
      const image = await template();
      const fork = await kit.create({ image });
      await image.release();
      await image.release();
      expect(await kit.output(fork, "cat state")).toBe("set up\n");
      await expect(kit.create({ image })).rejects.toThrow(/MORTISE_SANDBOX_SETUP|released|not prepared/);
    });
  });
}
