/**
 * Owns the cases every sandbox backend must pass. Each runs real sandboxes with real processes; what a backend
 * declares it cannot do is not asked of it, and is listed by the caller.
 */
import { existsSync } from "node:fs";
import http from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type {
  Command,
  ExecResult,
  Image,
  Sandbox,
  SandboxBackend,
  SandboxSpec,
  Tree,
} from "../src/backend/types.js";
import { decodePatch, encodePatch } from "../src/patch/codec.js";
import { packTar, unpackTar } from "../src/patch/tar.js";

export interface Confines {
  /** Capabilities, system calls, network and memory are confined and measured. */
  readonly isolation: boolean;
  readonly diskLimit: boolean;
  /** A command can be killed without the sandbox ending. */
  readonly outlivesTimeout: boolean;
}

const MIB = 1024 * 1024;
const ENVIRONMENT = { PATH: "/usr/bin:/bin", HOME: "/tmp" };
const DIFF_LIMITS = { maxFileBytes: MIB, maxTotalBytes: 4 * MIB };
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const file = (path: string, content: string, isExecutable = false) => ({
  path,
  isExecutable,
  content: Buffer.from(content),
});

export function describeBackend(name: string, make: () => SandboxBackend, can: Confines): void {
  describe(`${name} backend`, () => {
    let backend: SandboxBackend;
    let image: Image;
    let workspace: Tree;
    let hidden: Tree;
    let serial = 0;
    const open: Sandbox[] = [];

    beforeAll(async () => {
      backend = make();
      await backend.start();
      image = await backend.prepareImage({ kind: "host" });
      workspace = await backend.prepareTree({
        kind: "files",
        files: [
          file("README.md", "read me\n"),
          file("run.sh", "#!/bin/sh\necho run\n", true),
          file("src/a.js", "export const a = 1;\n"),
          file("src/b.js", "export const b = 2;\n"),
          file("docs/one/x.txt", "x\n"),
          file("docs/one/y.txt", "y\n"),
        ],
      });
      hidden = await backend.prepareTree({ kind: "files", files: [file("secret.txt", "hidden\n")] });
    });
    afterEach(async () => {
      await Promise.all(open.splice(0).map((sandbox) => sandbox.destroy()));
    });
    afterAll(async () => {
      await backend?.stop();
    });

    async function create(changes: Partial<SandboxSpec> = {}): Promise<Sandbox> {
      const sandbox = await backend.create({
        id: `${name}-${process.pid}-${++serial}`,
        image,
        workspace,
        mounts: [],
        limits: { cpus: 1, memoryBytes: 192 * MIB, pids: 48, diskBytes: 16 * MIB, outputBytes: 4096 },
        network: { kind: "none" },
        ...changes,
      });
      open.push(sandbox);
      return sandbox;
    }
    const run = (
      sandbox: Sandbox,
      argv: Command["argv"],
      changes: Partial<Command> = {},
    ): Promise<ExecResult> => sandbox.exec({ argv, environment: ENVIRONMENT, timeoutMs: 20_000, ...changes });
    const sh = (sandbox: Sandbox, script: string, changes: Partial<Command> = {}) =>
      run(sandbox, ["sh", "-c", script], changes);

    describe("how a command ends", () => {
      test("exit code, output streams and working directory", async () => {
        const result = await sh(await create(), "cat src/a.js; echo problem >&2; exit 3");
        expect(result.outcome).toEqual({ kind: "exited", code: 3 });
        expect(text(result.stdout.bytes)).toBe("export const a = 1;\n");
        expect(text(result.stderr.bytes)).toBe("problem\n");
        expect(result.isInsecure).toBe(backend.isInsecure);
      });

      test("the home directory and /tmp can be written", async () => {
        const result = await sh(
          await create(),
          'echo a > "$HOME/.note" && echo b > /tmp/note && rm /tmp/note',
        );
        expect(result.outcome).toEqual({ kind: "exited", code: 0 });
      });

      test("death by a signal", async () => {
        const result = await sh(await create(), "sh -c 'kill -SEGV $$'; exit $?");
        expect(result.outcome).toEqual({ kind: "signalled", signal: "SIGSEGV" });
      });

      test("a program that does not exist is refused, not a result", async () => {
        const result = await run(await create(), ["no-such-program"]);
        expect(result.outcome.kind).toBe("refused");
        expect(JSON.stringify(result.outcome)).toContain("no-such-program");
      });

      test("a timeout ends the whole tree", async () => {
        const sandbox = await create();
        const slow = "(sleep 1; echo late >> late.txt) & echo started; sleep 600";
        const result = await sh(sandbox, slow, { timeoutMs: 900 });
        expect(result.outcome).toEqual({ kind: "timeout" });
        expect(text(result.stdout.bytes)).toBe("started\n");
        await delay(500);
        if (can.outlivesTimeout)
          expect((await sh(sandbox, "test -e late.txt")).outcome).toEqual({ kind: "exited", code: 1 });
        await sandbox.quiesce();
        expect((await sandbox.diff(DIFF_LIMITS)).entries).toEqual([]);
      });

      test("an aborted signal cancels, before and during", async () => {
        const sandbox = await create();
        const controller = new AbortController();
        const running = sh(sandbox, "echo up; sleep 600", {
          signal: controller.signal,
          onStdout: () => controller.abort(),
        });
        expect((await running).outcome).toEqual({ kind: "cancelled" });
        if (can.outlivesTimeout)
          expect((await sh(sandbox, "true", { signal: AbortSignal.abort() })).outcome).toEqual({
            kind: "cancelled",
          });
      });

      test("a destroyed sandbox loses its command", async () => {
        const sandbox = await create();
        let isUp: () => void = () => undefined;
        const up = new Promise<void>((resolve) => (isUp = resolve));
        const running = sh(sandbox, "echo up; sleep 600", { onStdout: isUp });
        await up;
        await sandbox.destroy();
        expect((await running).outcome.kind).toBe("lost");
      });

      test("output keeps its head and its tail", async () => {
        const result = await sh(await create(), "echo first; seq 1 20000; echo last");
        expect(result.stdout.isTruncated).toBe(true);
        expect(result.stdout.totalBytes).toBeGreaterThan(100_000);
        expect(result.stdout.bytes.byteLength).toBe(4096);
        expect(text(result.stdout.bytes)).toMatch(/^first\n1\n2\n[\s\S]*20000\nlast\n$/);
      });

      test("standard input arrives whole", async () => {
        const stdin = Buffer.alloc(300_000, "abc\n");
        const result = await run(await create(), ["wc", "-c"], { stdin });
        expect(text(result.stdout.bytes).trim()).toBe("300000");
      });
    });

    describe("the model endpoint", () => {
      const script = `require("node:http").get("http://127.0.0.1:8080/v1/models", (reply) => reply.pipe(process.stdout))
        .on("error", (error) => { console.log(error.code); process.exitCode = 9; })`;

      async function withModel(
        fn: (address: { host: string; port: number }) => Promise<void>,
      ): Promise<void> {
        const server = http.createServer((request, reply) => reply.end(`model saw ${request.url}`));
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
        try {
          await fn({ host: "127.0.0.1", port: (server.address() as { port: number }).port });
        } finally {
          server.closeAllConnections();
          server.close();
        }
      }

      test("is reached at 127.0.0.1:8080, and gone after quiesce", async () => {
        await withModel(async (address) => {
          const sandbox = await create({ network: { kind: "model", ...address } });
          const result = await run(sandbox, ["node", "-e", script]);
          expect(text(result.stdout.bytes)).toBe("model saw /v1/models");
          await sandbox.quiesce();
          await expect(run(sandbox, ["true"])).rejects.toThrow("quiesced");
        });
      });

      test.skipIf(!can.isolation)("is the only way out", async () => {
        await withModel(async ({ host, port }) => {
          const probe = `const net = require("node:net"); const seen = [];
            const targets = [[${port}, "${host}"], [53, "1.1.1.1"], [80, "169.254.169.254"], [8080, "::1"], [22, "172.17.0.1"]];
            Promise.all(targets.map(([port, host]) => new Promise((done) => {
              const socket = net.connect({ port, host, timeout: 2000 });
              socket.on("connect", () => done("open " + host)).on("error", () => done("")).on("timeout", () => done(""));
            }))).then((found) => { console.log(found.filter(Boolean).join()); process.exit(); });`;
          const closed = await create({ network: { kind: "model", host: "127.0.0.1", port } });
          const result = await run(closed, ["node", "-e", probe]);
          expect(result.outcome).toEqual({ kind: "exited", code: 0 });
          expect(text(result.stdout.bytes)).toBe("\n");
          const without = await run(await create(), ["node", "-e", script]);
          expect(text(without.stdout.bytes)).toBe("ECONNREFUSED\n");
        });
      });
    });

    describe("limits", () => {
      test.skipIf(!can.isolation)("out of memory is reported with the kernel's evidence", async () => {
        const result = await run(await create(), [
          "node",
          "-e",
          "for (const a = [];;) a.push(Buffer.alloc(4e6, 1))",
        ]);
        expect(result.outcome).toEqual({ kind: "out-of-memory", kills: 1 });
        expect(result.usage.memoryPeakBytes).toBeGreaterThan(150 * MIB);
        expect(result.usage.cpuMs).toBeGreaterThan(0);
      });

      test.skipIf(!can.isolation)("exit 137 without a kill is not called out of memory", async () => {
        const result = await sh(await create(), "exit 137");
        expect(result.outcome).toEqual({ kind: "signalled", signal: "SIGKILL" });
      });

      test.skipIf(!can.isolation)("a fork bomb stays in its pids limit and is counted", async () => {
        const bomb = `const { spawn } = require("node:child_process"); let failed = 0;
          for (let i = 0; i < 90; i++) spawn("sleep", ["5"]).on("error", () => failed++);
          setTimeout(() => { console.log(failed > 20); process.exit(); }, 1500);`;
        const result = await run(await create(), ["node", "-e", bomb]);
        expect(text(result.stdout.bytes)).toBe("true\n");
        expect(result.usage.pidsRefusals).toBeGreaterThan(20);
      });

      test.skipIf(!can.diskLimit)("the disk limit ends in ENOSPC", async () => {
        const script = `try { for (;;) require("node:fs").appendFileSync("big", Buffer.alloc(1 << 20)); } catch (e) { console.log(e.code); }`;
        expect(text((await run(await create(), ["node", "-e", script])).stdout.bytes)).toBe("ENOSPC\n");
      });

      test.skipIf(!can.isolation)(
        "no capability, no new privilege, filtered system calls, another user",
        async () => {
          const sandbox = await create({ mounts: [{ source: hidden, target: "/tests" }] });
          const status = text((await sh(sandbox, "cat /proc/self/status; id -u")).stdout.bytes);
          for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
            expect(status).toMatch(new RegExp(`${set}:\\s0+\\n`));
          expect(status).toMatch(/NoNewPrivs:\s1\n[\s\S]*Seccomp:\s2\n[\s\S]*1000\n$/);
          const denied = await sh(
            sandbox,
            "echo x > /usr/bin/node; echo x > /etc/passwd; echo x > /tests/secret.txt; cat /tests/secret.txt",
          );
          expect(text(denied.stdout.bytes)).toBe("hidden\n");
          expect(text(denied.stderr.bytes).trim().split("\n")).toHaveLength(3);
        },
      );
    });

    describe("files", () => {
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

      async function changed() {
        const sandbox = await create();
        expect((await sh(sandbox, CHANGES)).outcome).toEqual({ kind: "exited", code: 0 });
        await sandbox.quiesce();
        return sandbox.diff(DIFF_LIMITS);
      }

      test("the diff is canonical, and says what it leaves out", async () => {
        const patch = await changed();
        const seen = patch.entries.map((entry) =>
          entry.kind === "file"
            ? [entry.path, entry.kind, entry.mode, text(entry.content)]
            : entry.kind === "symlink"
              ? [entry.path, entry.kind, entry.target]
              : [entry.path, entry.kind],
        );
        expect(seen).toEqual(EXPECTED);
        expect(patch.skipped).toEqual([
          { path: ".git/HEAD", reason: "git-metadata" },
          { path: "absolute", reason: "symlink-leaves-workspace" },
          { path: "out", reason: "symlink-leaves-workspace" },
        ]);
        expect(patch.base).toBe(workspace.digest);
      });

      test("a patch applied to a fresh sandbox gives the same workspace and the same patch", async () => {
        const bytes = await encodePatch(await changed());
        const patch = await decodePatch(bytes);
        const fresh = await create({ patch });
        const listing = await sh(
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
        const [first, second] = [await create(), await create()];
        await sh(first, "echo changed > README.md");
        expect(text((await sh(second, "cat README.md")).stdout.bytes)).toBe("read me\n");
      });

      test("files above the limit are named, not carried", async () => {
        const sandbox = await create();
        await sh(sandbox, `node -e 'require("fs").writeFileSync("big", Buffer.alloc(2 << 20))'`);
        await sandbox.quiesce();
        const patch = await sandbox.diff(DIFF_LIMITS);
        expect(patch.entries).toEqual([]);
        expect(patch.skipped).toEqual([{ path: "big", reason: "over-limit" }]);
      });

      test("tar goes in and comes out", async () => {
        const sandbox = await create();
        const tar = await packTar(
          [{ name: "in.txt", kind: "file", mode: 0o644, content: Buffer.from("put\n") }],
          1000,
        );
        await sandbox.putTar("/workspace", tar);
        expect(text((await sh(sandbox, "cat in.txt && echo out > out.txt")).stdout.bytes)).toBe("put\n");
        const members = await unpackTar(await sandbox.getTar("/workspace"), MIB);
        expect(members.find((member) => member.name === "out.txt")?.content.toString()).toBe("out\n");
      });

      test("links an agent planted lead the host nowhere", async () => {
        const sandbox = await create();
        await sh(sandbox, "rm -r docs && ln -s /etc docs && ln -s /etc/hostname src/host");
        const tar = await packTar(
          [{ name: "planted", kind: "file", mode: 0o644, content: Buffer.from("x") }],
          1000,
        );
        // Docker resolves links inside the container; the others refuse them. Neither may touch the host.
        await sandbox.putTar("/workspace/docs", tar).catch(() => undefined);
        expect(existsSync("/etc/planted")).toBe(false);
        await sandbox.quiesce();
        const patch = await sandbox.diff(DIFF_LIMITS);
        expect(patch.entries.map((entry) => entry.path)).toEqual(["docs/one/x.txt", "docs/one/y.txt"]);
      });
    });
  });
}
