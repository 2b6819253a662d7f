/** Several commands in one fresh sandbox, at a real manager: what each gets, how each ended, what is read after it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { RunOnceRequestSchema, RunStepSchema } from "@mortise/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RuncBackend } from "../../src/backend/runc/backend.js";
import { encodePatch } from "../../src/patch/codec.js";
import { type PatchEntry, sha256 } from "../../src/patch/patch.js";
import { ManagerWorld, RUN, TASK } from "../manager-world.js";

type Step = MessageInitShape<typeof RunStepSchema>;
type Request = Exclude<MessageInitShape<typeof RunOnceRequestSchema>, { $typeName: string }>;

const base = mkdtempSync(path.join(tmpdir(), "mortise-steps-"));
const runc = await new RuncBackend({ stateDirectory: base, runc: "runc" }).availability();
if (!runc.ok) console.log(`steps on runc skipped: ${runc.reason}`);
afterAll(() => rmSync(base, { recursive: true, force: true }));

const SOURCE = "exports.add = (a, b) => a - b;\n";
const shell = (name: string, script: string, more: object = {}): Step => ({
  name,
  argv: ["/bin/sh", "-c", script],
  timeoutMs: 20_000,
  ...more,
});

describe.each(runc.ok ? ["runc", "process"] : ["process"])("steps on %s", (backend) => {
  let world: ManagerWorld;
  let digest: string;

  beforeAll(async () => {
    world = await ManagerWorld.start({ directory: path.join(base, backend), backend });
    const answer = await world.client.runOnce({
      run: RUN,
      trial: "v",
      task: TASK,
      argv: ["cat", "src/add.cjs"],
    });
    expect(Buffer.from(answer.stdout).toString()).toBe(SOURCE);
    digest = await baseDigest(world);
  });
  afterAll(() => world?.stop());

  const run = (steps: Step[], more: Partial<Request> = {}) =>
    world.client.runOnce({ run: RUN, trial: "v", task: TASK, steps, ...more } as Request);
  const change = async (...entries: PatchEntry[]) => {
    const bytes = await encodePatch({ base: digest, entries, skipped: [] });
    return {
      sha256: sha256(bytes),
      size: BigInt(bytes.byteLength),
      place: { case: "inline" as const, value: Buffer.from(bytes) },
    };
  };
  const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();

  test("steps share the sandbox, each with its own command, variables, input and ending", async () => {
    const { steps, failureCode } = await run([
      shell("one", "echo left > here; cat; exit 3", { stdin: Buffer.from("given") }),
      shell("two", `cat here; echo "$OWN" >&2; sh -c 'kill -9 $$' 2> /dev/null; exit $?`, {
        environment: { OWN: "own" },
      }),
      shell("three", "sleep 60", { timeoutMs: 500 }),
      shell("four", "pwd; exit 0", { cwd: "/tmp" }),
    ]);
    expect(failureCode).toBe("");
    expect(steps.map(({ name }) => name)).toEqual(["one", "two", "three", "four"]);
    expect(steps[0]).toMatchObject({ exitCode: 3, timedOut: false });
    expect(text(steps[0]!.stdout)).toBe("given");
    expect(text(steps[1]!.stdout)).toBe("left\n");
    expect(text(steps[1]!.stderr)).toContain("own\n");
    expect(steps[1]).toMatchObject({ signal: "SIGKILL" });
    expect(steps[2]).toMatchObject({ timedOut: true });
    if (backend === "runc") expect(text(steps[3]!.stdout)).toBe("/tmp\n");
  });

  test("a required step that fails is the last", async () => {
    const { steps } = await run([shell("one", "exit 1", { required: true }), shell("two", "exit 0")]);
    expect(steps.map(({ name, exitCode }) => [name, exitCode])).toEqual([["one", 1]]);
  });

  test("what is covered by a rule stays pristine and is said, what is to be kept is applied", async () => {
    const file = (name: string): PatchEntry => ({
      kind: "file",
      path: name,
      mode: 0o644,
      content: Buffer.from("new\n"),
    });
    const { steps, stripped } = await run([shell("one", "cat src/add.cjs; cat setup.cfg sub/setup.cfg")], {
      patch: (await change(file("src/add.cjs"), file("setup.cfg"), file("sub/setup.cfg"))) as never,
      filter: {
        rules: [
          { pattern: "src/add.cjs", reason: "a test" },
          { pattern: "**/setup.cfg", reason: "configuration" },
        ],
        keep: ["sub/setup.cfg"],
      },
    });
    expect(text(steps[0]!.stdout)).toBe(`${SOURCE}new\n`);
    expect(stripped.map(({ path: name, reason }) => [name, reason])).toEqual([
      ["setup.cfg", "configuration"],
      ["src/add.cjs", "a test"],
    ]);
  });

  test.runIf(backend === "runc")(
    "files of a diff are those of the pristine task, put in after what earlier steps did",
    async () => {
      const diff = `--- a/src/add.cjs\n+++ b/src/add.cjs\n@@ -1 +1 @@\n-${SOURCE}+fixed\n--- /dev/null\n+++ b/src/new/t.txt\n@@ -0,0 +1 @@\n+t\n`;
      const mine: PatchEntry = {
        kind: "file",
        path: "src/add.cjs",
        mode: 0o644,
        content: Buffer.from("mine\n"),
      };
      const { steps, textPatches, stripped } = await run(
        [
          shell("before", "cat src/add.cjs; echo later > src/add.cjs; ln -s /etc src/new"),
          shell("tests", "cat src/add.cjs src/new/t.txt", { putTextPatches: ["tests"] }),
        ],
        {
          patch: (await change(mine)) as never,
          textPatches: [{ name: "tests", diff: Buffer.from(diff) }],
        },
      );
      expect(text(steps[0]!.stdout)).toBe(SOURCE);
      expect(text(steps[1]!.stdout)).toBe("fixed\nt\n");
      expect(textPatches).toMatchObject([{ name: "tests", rung: "apply", failure: "" }]);
      expect(stripped).toMatchObject([{ path: "src/add.cjs", reason: "the diff tests changes it" }]);
    },
  );

  test("a diff that does not apply is said, and the steps that need it do not run", async () => {
    const diff = `--- a/src/add.cjs\n+++ b/src/add.cjs\n@@ -1,2 +1,2 @@\n-other\n+fixed\n context\n`;
    const { steps, textPatches } = await run(
      [shell("one", "exit 0"), shell("two", "exit 0", { putTextPatches: ["tests"] })],
      { textPatches: [{ name: "tests", diff: Buffer.from(diff) }] },
    );
    expect(steps.map(({ name }) => name)).toEqual(["one"]);
    expect(textPatches[0]).toMatchObject({ rung: "", failure: expect.stringMatching(/./) });
  });

  test("a request that cannot be run names its field", async () => {
    await expect(run([{ name: "x" }])).rejects.toThrow(/steps\[0\]\.argv is empty/);
    await expect(run([shell("x", "exit", { user: "nobody" })])).rejects.toThrow(/steps\[0\]\.user/);
    await expect(run([shell("x", "exit", { putTextPatches: ["y"] })])).rejects.toThrow(/put_text_patches/);
  });

  test.runIf(backend === "runc")("no process of a step lives on, whatever it did to stay", async () => {
    const { steps } = await run([
      shell(
        "one",
        "mkdir -p /tmp/r; (while :; do echo forged > /tmp/r/reward; done) > /dev/null 2>&1 & sleep 0.3",
      ),
      shell("two", "echo mine > /tmp/r/reward; sleep 0.3; cat /tmp/r/reward", {
        collect: [{ directory: "/tmp/r", maxFileBytes: 100 }],
      }),
    ]);
    expect(text(steps[1]!.stdout)).toBe("mine\n");
    expect(steps[1]!.files.map((file) => [file.path, text(file.content)])).toEqual([
      ["/tmp/r/reward", "mine\n"],
    ]);
  });

  test.runIf(backend === "runc")(
    "only regular files are read, none through a link, none that is large",
    async () => {
      const script = `mkdir sub; echo ok > sub/good; ln -s /etc/passwd link; mkfifo pipe 2> /dev/null; ln sub/good twin
      head -c 2000 /dev/zero > large; ln -s /etc etc`;
      const { steps } = await run([
        shell("one", script, {
          cwd: "/out",
          put: [{ directory: "/out", owner: "agent" }],
          collect: [
            { directory: "/out", maxFileBytes: 1000 },
            { directory: "/none", maxFileBytes: 1000 },
          ],
        }),
      ]);
      const found = Object.fromEntries(
        steps[0]!.files.map((file) => [file.path, file.refused || text(file.content)]),
      );
      expect(found).toMatchObject({
        "/out/link": "it is a symbolic link",
        "/out/etc": "it is a symbolic link",
        "/out/large": expect.stringContaining("2000 bytes"),
        "/none": expect.stringContaining("no directory"),
      });
      expect(Object.values(found).join()).not.toContain("root:");
    },
  );

  test.runIf(backend === "runc")("nothing a step leaves makes its place unreadable", async () => {
    const script = `const fs = require("node:fs"); fs.writeFileSync("a", "first");
      fs.writeFileSync(Buffer.from([0xff]), "no text");
      for (let i = 0; i < 30; i++) { fs.mkdirSync("n".repeat(200)); process.chdir("n".repeat(200)); }`;
    const { steps, failureCode } = await run([
      {
        name: "one",
        argv: ["node", "-e", script],
        timeoutMs: 20_000,
        cwd: "/out",
        put: [{ directory: "/out", owner: "agent" }],
        collect: [{ directory: "/out", maxFileBytes: 1000 }],
      },
    ]);
    expect(failureCode).toBe("");
    const [first, deep, ...others] = steps[0]!.files;
    expect(text(first!.content)).toBe("first");
    expect(deep!.refused).toBe("a path below it is too long");
    expect(others).toEqual([]);
  });

  test.runIf(backend === "runc")("mounts of the verifier are read-only", async () => {
    const { steps } = await run([shell("one", "cat /opt/own/f; echo x > /opt/own/f")], {
      mounts: [{ target: "/opt/own", files: [{ path: "f", content: Buffer.from("own\n") }] }],
    });
    expect(text(steps[0]!.stdout)).toBe("own\n");
    expect(steps[0]!.exitCode).not.toBe(0);
  });
});

/** The digest of the pristine tree, from what the manager answers about a change against another. */
async function baseDigest(world: ManagerWorld): Promise<string> {
  const bytes = await encodePatch({ base: "none", entries: [], skipped: [] });
  const content = {
    sha256: sha256(bytes),
    size: BigInt(bytes.byteLength),
    place: { case: "inline" as const, value: Buffer.from(bytes) },
  };
  const request = { run: RUN, trial: "v", task: TASK, argv: ["true"], patch: content };
  const refusal = await world.client.runOnce(request as never).catch((error: Error) => error.message);
  return /workspace is ([0-9a-f]+)/.exec(String(refusal))![1]!;
}
