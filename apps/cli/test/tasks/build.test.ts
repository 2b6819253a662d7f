/**
 * `mortise tasks build` with the real Docker engine of this host, on bases made of this host's programs: images from
 * Dockerfiles and from install configurations, what is kept, what is gone on with, and what failures are counted
 * under. Uses dist.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { DockerBackend, RuncBackend } from "@mortise/sandbox-manager";
import { indexTasks, loadIndexedTask, loadTask, readTaskIndex, writeTaskIndex } from "@mortise/tasks";
import { type BuildState, readBuildState } from "@mortise/tasks/build";
import { readIndex } from "@mortise/tasks/selection";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pythonImage } from "../../../../services/verifier/test/python-image.js";

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const PATIENCE_MS = 240_000;

const base = mkdtempSync(join(tmpdir(), "mortise-tasks-build-test-"));
const docker = new DockerBackend({ stateDirectory: join(base, "docker") });
const engine = await docker.availability();
const runc = await new RuncBackend({ stateDirectory: join(base, "runc"), runc: "runc" }).availability();
const python = engine.ok ? pythonImage() : { missing: "no engine" };
const whyNot = !engine.ok
  ? `Docker: ${engine.reason}`
  : "missing" in python
    ? `Python image: ${python.missing}`
    : "";

/** So that no image of an earlier run is taken for one of this. */
const UNIQUE = `${process.pid}-${Date.now()}`;
const BASE = `mortise-test-base:${UNIQUE}`;
const LABEL = `io.mortise.test=${UNIQUE}`;

/** A package that is installed by a path to its work tree. */
const RECORD = {
  repo: "elsewhere/summ",
  instance_id: "elsewhere__summ-1",
  patch:
    "--- a/summ/__init__.py\n+++ b/summ/__init__.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n",
  test_patch:
    "--- a/tests/test_sum.py\n+++ b/tests/test_sum.py\n@@ -2,3 +2,6 @@\n \n def test_zero():\n     assert add(0, 0) == 0\n+\n+def test_two():\n+    assert add(1, 1) == 2\n",
  problem_statement: "add subtracts.",
  FAIL_TO_PASS: ["tests/test_sum.py::test_two"],
  PASS_TO_PASS: ["tests/test_sum.py::test_zero"],
  install_config: {
    python: "3",
    pre_install: ["echo 'import sys; print(sys.argv)' > /usr/lib/made-before.py"],
    install:
      'pwd > "$(python -c "import pytest, os; print(os.path.dirname(os.path.dirname(pytest.__file__)))")/summ.pth"',
    test_cmd: "pytest -rA",
    log_parser: "parse_log_pytest",
    no_use_env: true,
  },
};

test.skipIf(whyNot === "")(`images of tasks are built: ${whyNot}`, ({ skip }) => skip());

async function mortise(...args: string[]) {
  const child = spawn(process.execPath, [MAIN, "tasks", ...args], { cwd: base });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const [status] = (await once(child, "close")) as [number];
  return { status, stdout, stderr };
}
const answer = (stdout: string) => JSON.parse(stdout.trim().split("\n").at(-1)!);

describe.skipIf(whyNot !== "")("images of tasks", { timeout: PATIENCE_MS }, () => {
  beforeAll(() => {
    const { layer } = python as Exclude<typeof python, { missing: string }>;
    const env = ["PATH=/usr/local/bin:/usr/bin:/bin", "LD_LIBRARY_PATH=/usr/lib/own", `TEST_RUN=${UNIQUE}`];
    const changes = [...env.map((one) => `ENV ${one}`), `LABEL ${LABEL}`].flatMap((one) => ["--change", one]);
    execFileSync("docker", ["import", ...changes, layer, BASE], { stdio: "ignore" });
  }, PATIENCE_MS);
  afterAll(() => {
    // Whatever stands on the base inherits its label, the steps of failed builds too.
    const label = `label=${LABEL}`;
    const listed = ["image", "ls", "--filter", label, "--format", "{{.Repository}}:{{.Tag}}"];
    const names = execFileSync("docker", listed, { encoding: "utf8" }).split("\n");
    const tags = names.filter((name) => name !== "" && !name.includes("<none>"));
    execFileSync("docker", ["image", "rm", ...tags], { stdio: "ignore" });
    execFileSync("docker", ["image", "prune", "--force", "--filter", label], { stdio: "ignore" });
    rmSync(base, { recursive: true, force: true });
  }, PATIENCE_MS);

  function put(place: string, files: Readonly<Record<string, string>>) {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(place, name)), { recursive: true });
      writeFileSync(join(place, name), content);
    }
  }

  function dockerfileTasks(root: string, dockerfiles: Readonly<Record<string, string>>, toml = "") {
    for (const [id, dockerfile] of Object.entries(dockerfiles))
      put(join(root, id), {
        "task.toml": `# kept\n[environment]\n${toml}`,
        "instruction.md": "Do it.\n",
        "tests/test.sh": "exit 1\n",
        "environment/Dockerfile": dockerfile,
      });
    writeTaskIndex(root, indexTasks(root, "train"));
  }

  const rowOf = (root: string, id: string) => readBuildState(root, id) as BuildState;

  test("of an imported record is built from its installation, and the task is graded in it without a network", async () => {
    const repository = join(base, "repositories", "elsewhere", "summ");
    put(repository, {
      "summ/__init__.py": "def add(a, b):\n    return a - b\n",
      "tests/test_sum.py": "from summ import add\n\ndef test_zero():\n    assert add(0, 0) == 0\n",
    });
    const git = (...args: string[]) =>
      execFileSync("git", ["-C", repository, "-c", "user.name=t", "-c", "user.email=t@t", ...args], {
        encoding: "utf8",
      });
    git("init", "-q");
    git("add", "-A");
    git("commit", "-qm", "old");
    const record = { ...RECORD, base_commit: git("rev-parse", "HEAD").trim() };
    writeFileSync(join(base, "records.jsonl"), `${JSON.stringify(record)}\n`);
    const limits = ["--memory-mb", "512", "--storage-mb", "256"];
    for (const out of ["one", "two"])
      expect((await mortise("import", "records.jsonl", "--out", out, ...limits)).status).toBe(0);
    const flags = ["--from", "install-config", "--base", `3=${BASE}`, "--repositories", "repositories"];
    const root = join(base, "one");
    const before = loadTask(join(root, "elsewhere__summ-1")).environment.dockerImage;

    const first = await mortise("build", "one", ...flags);
    expect(first.stdout, first.stderr).toBe(
      `1 built, 0 built before, 0 failed, 0 with an image of their own in ${root}\n`,
    );
    expect(first.status).toBe(0);
    const row = rowOf(root, "elsewhere__summ-1");
    expect(row).toMatchObject({ state: "built", attempts: 1, replacedImage: before });
    const [entry] = readTaskIndex(root);
    expect(loadIndexedTask(root, entry!).environment.dockerImage).toBe(row.image);
    expect(await readIndex(root)).toMatchObject([{ digest: row.digestAfter, image: row.image }]);
    expect(row.image).toMatch(/^docker-archive:\.\.\/images\/built\/([0-9a-f]{64})\.tar:mortise-task:\1$/);

    const again = answer((await mortise("build", "one", ...flags, "--json")).stdout);
    expect(again).toMatchObject({ built: 0, kept: 1, failed: 0, tasks: [row] });
    // Elsewhere the same record has the same name.
    const second = answer((await mortise("build", "two", ...flags, "--json")).stdout);
    expect(second.tasks).toMatchObject([{ state: "built", image: row.image }]);

    if (!runc.ok) return;
    const validated = await mortise("validate", "one", "--gold", "1", "--json");
    expect(answer(validated.stdout), validated.stderr).toMatchObject({
      validated: 1,
      invalid: 0,
      egressFree: 1,
    });
  });

  test.skipIf(runc.ok)(`the image is graded in: runc is absent`, ({ skip }) => skip());

  test("from Dockerfiles: what failed is counted by cause and kept, the others go on, and only what may do better is tried again", async () => {
    const root = join(base, "dockerfiles");
    const from = `FROM ${BASE}\nWORKDIR /w\n`;
    dockerfileTasks(root, {
      good: `${from}RUN echo 1 > one\n`,
      command: `${from}RUN no-such-program\n`,
      compile: `${from}RUN echo "make: *** [Makefile:4: all] Error 2"; exit 2\n`,
      network: `${from}RUN python -c "import socket; socket.getaddrinfo('example.org', 80)"\n`,
      syntax: `${from}RUNN true\n`,
      slow: `${from}RUN sleep 300\n`,
      absent: `FROM example.invalid/never/made@sha256:${"0".repeat(64)}\n`,
    });
    put(join(root, "own"), {
      "task.toml": '[environment]\ndocker_image = "x:1"\n',
      "instruction.md": "x\n",
      "tests/test.sh": "",
    });
    // Registries that do not answer are asked for minutes: that one is of the time limit, too.
    const first = await mortise("build", "dockerfiles", "--timeout", "30", "--jobs", "3");
    expect(first.status).toBe(2);
    expect(first.stdout).toMatch(/^cause +failed {2}first\n/m);
    expect(first.stdout).toMatch(/\n1 built, 0 built before, 6 failed, 1 with an image of their own in /);
    const causes = (ids: readonly string[]) =>
      Object.fromEntries(ids.map((id) => [id, rowOf(root, id).cause]));
    expect(causes(["command", "compile", "network", "syntax", "slow"])).toEqual({
      command: "command",
      compile: "compile",
      network: "network",
      syntax: "dockerfile",
      slow: "timeout",
    });
    expect(["network", "timeout", "base-image"]).toContain(rowOf(root, "absent").cause);
    expect(readFileSync(join(root, "good/task.toml"), "utf8")).toMatch(
      /^# kept\n\[environment\]\ndocker_image = "docker-archive:/,
    );
    for (const entry of readTaskIndex(root)) loadIndexedTask(root, entry);

    rmSync(join(root, "absent"), { recursive: true });
    put(root, { "slow/environment/Dockerfile": `${from}RUN echo 2 > two\n` });
    const second = answer((await mortise("build", "dockerfiles", "--json")).stdout);
    expect(second).toMatchObject({ built: 1, kept: 1, failed: 4, passedOver: 1 });
    const attempts = (id: string) => rowOf(root, id).attempts;
    expect(["good", "command", "syntax", "network"].map(attempts)).toEqual([1, 1, 1, 2]);
    await mortise("build", "dockerfiles", "--again");
    expect(["good", "command", "syntax", "network"].map(attempts)).toEqual([1, 2, 2, 3]);
  });

  test("that was killed while it was built is built by the next command, and its index is right", async () => {
    const root = join(base, "killed");
    dockerfileTasks(root, {
      t: `FROM ${BASE}\nWORKDIR /w\nRUN cat /proc/sys/kernel/random/uuid > first\nRUN sleep 5\n`,
    });
    const killed = spawn(process.execPath, [MAIN, "tasks", "build", root], { stdio: "ignore" });
    const closed = once(killed, "close");
    await expect.poll(() => existsSync(join(root, "builds/t.json")), { timeout: 60_000 }).toBe(true);
    await sleep(1000);
    killed.kill("SIGKILL");
    await closed;
    expect(rowOf(root, "t").state).toBe("building");
    expect(loadTask(join(root, "t")).environment.dockerImage).toBeUndefined();
    const next = await mortise("build", root);
    expect(next.stdout, next.stderr).toContain("1 built");
    const row = rowOf(root, "t");
    expect(row).toMatchObject({ state: "built", attempts: 2 });
    const [entry] = readTaskIndex(root);
    const { dockerImage } = loadIndexedTask(root, entry!).environment;
    expect(dockerImage).toBe(row.image);

    // Broken off after the image was written into the task and before that was recorded.
    const { image: _, digestAfter: __, ms: ___, ...building } = { ...row, state: "building" };
    writeFileSync(join(root, "builds/t.json"), JSON.stringify(building));
    writeTaskIndex(root, [{ id: "t", digest: row.digestBefore!, split: "train" }]);
    const archive = join(root, "images/built", `${/built\/(\w+)/.exec(dockerImage!)![1]}.tar`);
    const { mtimeMs } = statSync(archive);
    expect((await mortise("build", root)).stdout).toContain("1 built");
    expect(statSync(archive).mtimeMs).toBe(mtimeMs);
    loadIndexedTask(root, readTaskIndex(root)[0]!);
  });

  test("is refused with the field where a record says too little, and with the means where nothing builds", async () => {
    const root = join(base, "refused");
    const unknown = { ...RECORD, base_commit: "0".repeat(40) };
    writeFileSync(join(base, "unknown.jsonl"), `${JSON.stringify(unknown)}\n`);
    await mortise("import", "unknown.jsonl", "--out", "refused");
    const none = await mortise(
      "build",
      root,
      "--from",
      "install-config",
      "--base",
      `3=${BASE}`,
      "--repositories",
      base,
    );
    expect(none.status).toBe(2);
    expect(rowOf(root, "elsewhere__summ-1")).toMatchObject({ cause: "repository" });
    const config = join(root, "elsewhere__summ-1/tests/config.json");
    const { install_config: dropped, ...record } = JSON.parse(readFileSync(config, "utf8"));
    expect(dropped).toBeDefined();
    writeFileSync(config, JSON.stringify(record));
    const refused = await mortise("build", root, "--from", "install-config");
    expect(refused.stdout).toMatch(
      /: refused: .* elsewhere__summ-1\/tests\/config\.json: install_config is absent\n/,
    );

    const unbuilt = join(base, "unbuilt");
    dockerfileTasks(unbuilt, { t: `FROM ${BASE}\n` });
    const child = spawn(process.execPath, [MAIN, "tasks", "build", unbuilt], {
      env: { ...process.env, DOCKER_HOST: `unix://${join(base, "no.sock")}` },
    });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    await once(child, "close");
    expect(stderr).toMatch(/environment\.docker_image.*no Docker engine answers/s);
    expect(child.exitCode).not.toBe(0);
  });
});
