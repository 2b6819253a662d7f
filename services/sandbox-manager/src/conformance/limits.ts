/** What one sandbox may use, and how that is measured. */
import { describe, expect, test } from "vitest";
import { type Kit, LIMITS, MIB, started, text } from "./kit.js";

/** Fills the pids limit and stays. */
const SATURATE = `const { spawn } = require("node:child_process"); let failed = 0;
  for (let i = 0; i < 90; i++) spawn("sleep", ["60"]).on("error", () => ++failed === 20 && console.log("full"));
  setInterval(() => {}, 1000);`;
const APPEND_UNTIL_FULL = (file: string) =>
  `let n = 0; try { for (;; n++) require("node:fs").appendFileSync("${file}", Buffer.alloc(1 << 20)); }
   catch (error) { console.log(error.code, n); }`;

export function describeLimits(kit: Kit): void {
  describe("limits", () => {
    test.skipIf(!kit.can.isolation)("out of memory is reported with the kernel's evidence", async () => {
      const result = await kit.run(await kit.create(), [
        "node",
        "-e",
        "for (const a = [];;) a.push(Buffer.alloc(4e6, 1))",
      ]);
      expect(result.outcome).toEqual({ kind: "out-of-memory", kills: 1 });
      expect(result.usage.memoryPeakBytes).toBeGreaterThan(150 * MIB);
      expect(result.usage.cpuMs).toBeGreaterThan(0);
    });

    test.skipIf(!kit.can.isolation)("commands that run at once share the memory", async () => {
      const limits = { ...LIMITS, memoryBytes: 256 * MIB, diskBytes: 4 * MIB };
      const sandbox = await kit.create({ limits });
      const hold = "const a = Buffer.alloc(150 << 20, 1); console.log('up'); setTimeout(() => a, 3000);";
      const both = await Promise.all([1, 2].map(() => kit.run(sandbox, ["node", "-e", hold])));
      const kinds = both.map(({ outcome }) => outcome.kind);
      // Each alone would fit. Whether killing one is enough for the other depends on how fast the kernel is.
      expect(kinds).toContain("out-of-memory");
      expect(kinds.filter((kind) => kind !== "out-of-memory" && kind !== "exited")).toEqual([]);
      expect((await kit.run(sandbox, ["node", "-e", hold])).outcome).toEqual({ kind: "exited", code: 0 });
    });

    test.skipIf(!kit.can.isolation)("exit 137 without a kill is not called out of memory", async () => {
      const result = await kit.sh(await kit.create(), "exit 137");
      expect(result.outcome).toEqual({ kind: "signalled", signal: "SIGKILL" });
    });

    test.skipIf(!kit.can.isolation)("a fork bomb stays in its pids limit and is counted", async () => {
      const bomb = `const { spawn } = require("node:child_process"); let failed = 0;
        for (let i = 0; i < 90; i++) spawn("sleep", ["5"]).on("error", () => failed++);
        setTimeout(() => { console.log(failed > 20); process.exit(); }, 1500);`;
      const result = await kit.run(await kit.create(), ["node", "-e", bomb]);
      expect(text(result.stdout.bytes)).toBe("true\n");
      expect(result.usage.pidsRefusals).toBeGreaterThan(20);
    });

    test.skipIf(!kit.can.isolation || kit.can.pidsReserve === false)(
      "a saturated pids limit leaves room for our own next command",
      async () => {
        const sandbox = await kit.create();
        const { result } = await started(
          (changes) => kit.run(sandbox, ["node", "-e", SATURATE], changes),
          "full",
        );
        expect((await kit.run(sandbox, ["true"])).outcome).toEqual({ kind: "exited", code: 0 });
        await sandbox.quiesce();
        await result;
      },
    );

    test.skipIf(!kit.can.isolation)(
      "a small cpu share is kept to, and the wait for it is measured",
      async () => {
        const sandbox = await kit.create({ limits: { ...LIMITS, cpus: 0.1 } });
        // So much work, not so much time: on a busy machine nothing would be left to hold back.
        const spin = "while (process.cpuUsage().user < 250_000);";
        const { usage, wallMs } = await kit.run(sandbox, ["node", "-e", spin]);
        expect(usage.cpuMs).toBeLessThan(wallMs * 0.2);
        expect(usage.throttledMs).toBeGreaterThan(0);
      },
    );

    test.skipIf(!kit.can.isolation)("use adds up over commands, the running one included", async () => {
      const sandbox = await kit.create();
      const first = await kit.run(sandbox, ["node", "-e", "1"]);
      expect((await sandbox.stats()).cpuMs).toBeGreaterThanOrEqual(Math.floor(first.usage.cpuMs!));
      const spin = "console.log('up'); for (;;);";
      const { result } = await started((changes) => kit.run(sandbox, ["node", "-e", spin], changes), "up");
      await expect
        .poll(async () => (await sandbox.stats()).cpuMs)
        .toBeGreaterThan(Math.ceil(first.usage.cpuMs!) + 50);
      await sandbox.quiesce();
      const second = await result;
      const total = await sandbox.stats();
      expect(total.cpuMs).toBeGreaterThanOrEqual(Math.floor(second.usage.cpuMs!));
      expect(total.oomKills).toBe(0);
    });

    test.skipIf(!kit.can.diskLimit)("the disk limit ends in ENOSPC", async () => {
      const result = await kit.run(await kit.create(), ["node", "-e", APPEND_UNTIL_FULL("big")]);
      expect(text(result.stdout.bytes)).toMatch(/^ENOSPC 1[0-9]\n$/);
    });

    test("a scratch volume is empty, can be written by the agent and keeps what is in it", async () => {
      const sandbox = await kit.create({ scratch: [{ target: "/scratch/data", bytes: 8 * MIB }] });
      expect(await kit.output(sandbox, "ls -A /scratch/data; echo kept > /scratch/data/note")).toBe("");
      expect(await kit.output(sandbox, "cat /scratch/data/note")).toBe("kept\n");
    });

    test.skipIf(!kit.can.diskLimit)("a scratch volume has a size of its own, beside the disk", async () => {
      const limits = { ...LIMITS, diskBytes: 4 * MIB };
      const sandbox = await kit.create({ limits, scratch: [{ target: "/scratch", bytes: 8 * MIB }] });
      const result = await kit.run(sandbox, ["node", "-e", APPEND_UNTIL_FULL("/scratch/big")]);
      expect(text(result.stdout.bytes)).toMatch(/^ENOSPC [78]\n$/);
      expect(text((await kit.run(sandbox, ["node", "-e", APPEND_UNTIL_FULL("big")])).stdout.bytes)).toMatch(
        /^ENOSPC [345]\n$/,
      );
    });
  });
}
