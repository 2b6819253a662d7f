/** How a command is given and how it ends. */
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { shell } from "../backend/types.js";
import { DIFF_LIMITS, type Kit, readBelow, started, text } from "./kit.js";

/** Leaves its process group and session, and writes on. */
const DAEMON = `require("node:child_process").spawn("sh", ["-c", "while :; do echo tick >> ticks; sleep 0.05; done"],
  { detached: true, stdio: "ignore" }).unref(); console.log("up"); setInterval(() => {}, 1000);`;

export function describeEndings(kit: Kit): void {
  describe("a command", () => {
    test("has an exit code, two streams and the workspace as its directory", async () => {
      let errors = "";
      const result = await kit.sh(await kit.create(), "cat src/a.js; echo problem >&2; exit 3", {
        onStderr: (chunk) => (errors += text(chunk)),
      });
      expect(result.outcome).toEqual({ kind: "exited", code: 3 });
      expect(text(result.stdout.bytes)).toBe("export const a = 1;\n");
      expect(text(result.stderr.bytes)).toBe("problem\n");
      expect(errors).toBe("problem\n");
      expect(result.wallMs).toBeGreaterThan(0);
      expect(result.isInsecure).toBe(kit.backend.isInsecure);
    });

    test("runs in the directory, with the environment and through the shell it is given", async () => {
      const result = await kit.run(await kit.create(), shell('pwd; echo "$WORD" "$#"'), {
        cwd: "/workspace/src",
        environment: { PATH: "/usr/bin:/bin", WORD: "a b; $(c)" },
      });
      expect(text(result.stdout.bytes)).toMatch(/\/workspace\/src\na b; \$\(c\) 0\n$/);
    });

    test.skipIf(!kit.can.isolation)("runs as the user it is given", async () => {
      const sandbox = await kit.create();
      expect(await kit.output(sandbox, "id -u; id -g")).toBe("1000\n1000\n");
      expect(await kit.output(sandbox, "id -u; id -g; echo x > /etc/mine", { user: "root" })).toBe("0\n0\n");
      expect((await kit.sh(sandbox, "echo x > /etc/mine")).outcome).not.toEqual({ kind: "exited", code: 0 });
    });

    test("can write the home directory and /tmp", async () => {
      await kit.output(await kit.create(), 'echo a > "$HOME/.note" && echo b > /tmp/note && rm /tmp/note');
    });

    test("that dies by a signal says which", async () => {
      const result = await kit.sh(await kit.create(), "sh -c 'kill -SEGV $$'; exit $?");
      expect(result.outcome).toEqual({ kind: "signalled", signal: "SIGSEGV" });
    });

    test("whose program does not exist is refused, not a result", async () => {
      const result = await kit.run(await kit.create(), ["no-such-program"]);
      expect(result.outcome.kind).toBe("refused");
      expect(JSON.stringify(result.outcome)).toContain("no-such-program");
    });

    test("that takes too long ends with its whole tree", async () => {
      const sandbox = await kit.create();
      const slow = "(sleep 1; echo late >> late.txt) & echo started; sleep 600";
      const result = await kit.sh(sandbox, slow, { timeoutMs: 900 });
      expect(result.outcome).toEqual({ kind: "timeout" });
      expect(text(result.stdout.bytes)).toBe("started\n");
      await delay(500);
      if (kit.can.outlivesTimeout)
        expect((await kit.sh(sandbox, "test -e late.txt")).outcome).toEqual({ kind: "exited", code: 1 });
      await sandbox.quiesce();
      expect((await sandbox.diff(DIFF_LIMITS)).entries).toEqual([]);
    });

    test("is cancelled by its signal, before and during", async () => {
      const sandbox = await kit.create();
      const controller = new AbortController();
      const running = kit.sh(sandbox, "echo up; sleep 600", {
        signal: controller.signal,
        onStdout: () => controller.abort(),
      });
      expect((await running).outcome).toEqual({ kind: "cancelled" });
      if (kit.can.outlivesTimeout)
        expect((await kit.sh(sandbox, "true", { signal: AbortSignal.abort() })).outcome).toEqual({
          kind: "cancelled",
        });
    });

    test("is lost with its sandbox", async () => {
      const sandbox = await kit.create();
      const { result } = await started((changes) => kit.sh(sandbox, "echo up; sleep 600", changes), "up");
      await sandbox.destroy();
      expect((await result).outcome.kind).toBe("lost");
      await sandbox.destroy();
    });

    test("keeps the head and the tail of its output, as much as it is allowed", async () => {
      const sandbox = await kit.create();
      const result = await kit.sh(sandbox, "echo first; seq 1 20000; echo last");
      expect(result.stdout.isTruncated).toBe(true);
      expect(result.stdout.totalBytes).toBeGreaterThan(100_000);
      expect(result.stdout.bytes.byteLength).toBe(4096);
      expect(text(result.stdout.bytes)).toMatch(/^first\n1\n2\n[\s\S]*20000\nlast\n$/);
      const less = await kit.sh(sandbox, "seq 1 100; seq 1 100 >&2", { outputBytes: 16 });
      expect(text(less.stdout.bytes)).toBe("1\n2\n3\n4\n\n99\n100\n");
      expect(less.stderr.bytes.byteLength).toBe(16);
      expect((await kit.sh(sandbox, "seq 1 9000", { outputBytes: 1 << 20 })).stdout.bytes.byteLength).toBe(
        4096,
      );
    });

    test("gets its standard input whole", async () => {
      const stdin = Buffer.alloc(300_000, "abc\n");
      const result = await kit.run(await kit.create(), ["wc", "-c"], { stdin });
      expect(text(result.stdout.bytes).trim()).toBe("300000");
    });

    test.skipIf(!kit.can.isolation)("and every daemon it left end with quiesce", async () => {
      const sandbox = await kit.create();
      const { result } = await started((changes) => kit.run(sandbox, ["node", "-e", DAEMON], changes), "up");
      await delay(200);
      await sandbox.quiesce();
      expect((await result).outcome).toEqual({ kind: "cancelled" });
      const ticks = await readBelow(sandbox, "/workspace", "ticks");
      expect(ticks).toContain("tick");
      await delay(300);
      expect(await readBelow(sandbox, "/workspace", "ticks")).toBe(ticks);
      await expect(kit.run(sandbox, ["true"])).rejects.toThrow("quiesced");
      await sandbox.quiesce();
    });
  });
}
