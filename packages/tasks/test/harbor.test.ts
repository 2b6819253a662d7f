import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { writeTaskFiles } from "../src/demo/task-directory.js";
import {
  indexTasks,
  listTaskIds,
  loadIndexedTask,
  loadTask,
  readTaskIndex,
  taskDigest,
  writeTaskIndex,
} from "../src/index.js";

const TASK_TOML = `schema_version = "1.2"
[task]
name = "example/one"
[verifier]
timeout_sec = 20
[agent]
timeout_sec = 90.5
[environment]
memory_mb = 512
network_mode = "no-network"
`;

let root: string;
let directory: string;

/** Writes a minimal task directory; a file given as undefined is left out. */
function write(changes: Record<string, string | undefined> = {}) {
  const files: Record<string, string | undefined> = {
    "task.toml": TASK_TOML,
    "instruction.md": "Repair it.\n",
    "environment/Dockerfile": "FROM scratch\n",
    "tests/test.sh": "exit 0\n",
    "solution/solve.sh": "exit 0\n",
    ...changes,
  };
  const kept = Object.entries(files).flatMap(([path, content]) =>
    content === undefined
      ? []
      : [{ path, content, kind: path.endsWith(".sh") ? ("x" as const) : ("-" as const) }],
  );
  writeTaskFiles(directory, kept);
}

function refusal(act: () => unknown): MortiseError {
  try {
    act();
  } catch (error) {
    if (error instanceof MortiseError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "mortise-harbor-"));
  directory = join(root, "one");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe("loadTask", () => {
  test.each([
    ["environment/repository", "/etc"],
    ["tests/expected.json", "/etc/hostname"],
    ["solution/gold.patch", "/nowhere"],
  ])("refuses %s as a link, which the digest does not look behind", (part, target) => {
    write();
    symlinkSync(target, join(directory, part));
    const error = refusal(() => loadTask(directory));
    expect(error).toMatchObject({ code: "MORTISE_TASK_INVALID", detail: { field: part } });
  });

  test("reads a task with its limits and without warnings", () => {
    write();
    const task = loadTask(directory);
    expect(task).toMatchObject({
      id: "one",
      instruction: "Repair it.\n",
      agentTimeoutSec: 90.5,
      verifier: { timeoutSec: 20 },
      environment: { memoryMb: 512, cpus: 1, network: { mode: "no-network" } },
      warnings: [],
    });
    expect(task.tests.expected).toBeUndefined();
    expect(task.solution?.script).toBe(join(directory, "solution/solve.sh"));
  });

  test.each(["task.toml", "instruction.md", "tests/test.sh"])("names the missing %s", (path) => {
    write({ [path]: undefined });
    const error = refusal(() => loadTask(directory));
    expect(error.code).toBe("MORTISE_TASK_INVALID");
    expect(error.message).toContain(`${path}: is missing`);
    expect(error.fix).toContain(join(directory, path));
  });

  test.each([
    ["a wrong type", "[environment]\ncpus = 'two'", "environment.cpus"],
    ["a negative limit", "[verifier]\ntimeout_sec = -1", "verifier.timeout_sec"],
    ["a fraction of a megabyte", "[environment]\nmemory_mb = 1.5", "environment.memory_mb"],
    ["a name without organisation", "[task]\nname = 'one'", "task.name"],
    ["an unknown network mode", "[environment]\nnetwork_mode = 'open'", "environment.network_mode"],
    ["a host with a port", "[environment]\nallowed_hosts = ['a.org:80']", "environment.allowed_hosts.0"],
    [
      "hosts beside another mode",
      "[environment]\nnetwork_mode = 'public'\nallowed_hosts = []",
      "allowed_hosts",
    ],
    ["steps", "[[steps]]\nname = 'a'", "steps"],
    [
      "hosts beside the agent's other mode",
      "[agent]\nnetwork_mode = 'public'\nallowed_hosts = []",
      "agent.allowed_hosts",
    ],
    ["a size without a unit", "[environment]\nmemory = '4'", "environment.memory"],
    [
      "a health check without a command",
      "[environment.healthcheck]\nretries = 2",
      "environment.healthcheck.command",
    ],
    ["windows", "[environment]\nos = 'windows'", "environment.os"],
  ])("refuses %s and names the field", (_, toml, field) => {
    write({ "task.toml": toml });
    const error = refusal(() => loadTask(directory));
    expect(error.code).toBe("MORTISE_TASK_INVALID");
    expect(error.message).toContain(field);
    expect(error.message).toContain(directory);
    expect(error.fix).not.toBe("");
  });

  test("names the line that is not TOML", () => {
    write({ "task.toml": 'version = "1"\n[environment\n' });
    expect(refusal(() => loadTask(directory)).message).toContain("task.toml:2:");
  });

  test("warns of unknown keys with the nearest name, at any depth", () => {
    write({
      "task.toml": "[environment]\nmemory_mbs = 5\n[verifier]\ntimeout = 3\n[metadata]\nanything = 1\n",
    });
    expect(loadTask(directory).warnings.map((warning) => warning.replace(/^.*task.toml: /, ""))).toEqual([
      "unknown key environment.memory_mbs (did you mean environment.memory_mb?)",
      "unknown key verifier.timeout (did you mean verifier.timeout_sec?)",
    ]);
  });

  test("needs a Dockerfile or an image", () => {
    write({ "environment/Dockerfile": undefined });
    expect(refusal(() => loadTask(directory)).message).toContain("environment.docker_image");
    write({ "task.toml": "[environment]\ndocker_image = 'local/node'", "environment/Dockerfile": undefined });
    expect(loadTask(directory).environment.dockerImage).toBe("local/node");
  });

  test.each([
    ["allow_internet = false", "no-network"],
    ["allowed_hosts = ['example.org']", "allowlist"],
    ["", "public"],
  ])("reads the network of %j", (line, mode) => {
    write({ "task.toml": `[environment]\n${line}\n` });
    expect(loadTask(directory).environment.network.mode).toBe(mode);
  });

  test("reads the old names of schema 1.0", () => {
    write({ "task.toml": "version = '1.0'\n[environment]\nmemory = '4G'\nstorage = '512M'\n" });
    expect(loadTask(directory)).toMatchObject({
      environment: { memoryMb: 4096, storageMb: 512 },
      warnings: [],
    });
  });

  test("says what it does not act on", () => {
    write({
      "task.toml":
        "schema_version = '9.1'\nartifacts = '/out'\n[environment]\ngpus = 1\nmemory = '1G'\nmemory_mb = 512\n",
    });
    const task = loadTask(directory);
    expect(task.environment.memoryMb).toBe(512);
    expect(task.warnings.map((warning) => warning.replace(/^.*task.toml: /, ""))).toEqual([
      "schema_version 9.1 is read as 1.4",
      "environment.memory is an old name and is passed over for environment.memory_mb",
      "environment.gpus is not acted on",
      "artifacts is not acted on",
    ]);
  });

  test("reads users, networks of agent and verifier, and the health check with either spelling", () => {
    write({
      "task.toml": `[environment]
network_mode = "no-network"
[environment.healthcheck]
command = "test -e ready"
interval_sec = 0.5
timeout = 2
start_period = 3
[agent]
user = "root"
allowed_hosts = ["example.org"]
[verifier]
user = 1000
`,
    });
    expect(loadTask(directory)).toMatchObject({
      environment: {
        healthcheck: {
          command: "test -e ready",
          intervalMs: 500,
          timeoutMs: 2000,
          startPeriodMs: 3000,
          startIntervalMs: 5000,
          retries: 3,
        },
      },
      agent: { user: "root", network: { mode: "allowlist", allowedHosts: ["example.org"] } },
      verifier: { user: "1000", network: { mode: "no-network", allowedHosts: [] } },
      warnings: [],
    });
  });

  test("leaves the work tree's place to the image, unless the task names it", () => {
    write({ "task.toml": "[environment]\ndocker_image = 'local/node'\n" });
    expect(loadTask(directory).environment.workdir).toBeUndefined();
    write({ "task.toml": "[environment]\ndocker_image = 'local/node'\nworkdir = '/testbed'\n" });
    expect(loadTask(directory).environment.workdir).toBe("/testbed");
    write({ "task.toml": "" });
    expect(loadTask(directory).environment.workdir).toBeUndefined();
    mkdirSync(join(directory, "environment/repository"));
    expect(loadTask(directory).environment.workdir).toBe("/workspace");
  });

  test("refuses expected tests that name one twice", () => {
    const expected = { schema: 1, format: "json-lines", failToPass: ["a"], passToPass: ["a"] };
    write({ "tests/expected.json": JSON.stringify(expected) });
    expect(refusal(() => loadTask(directory)).message).toContain("names a test twice");
  });

  test("refuses a directory name that is not an id", () => {
    directory = join(root, "one.two");
    write();
    expect(refusal(() => loadTask(directory)).message).toContain('"one.two" is not an id');
  });
});

describe("taskDigest", () => {
  test("changes with content, names and the executable bit, and with nothing else", () => {
    write();
    const digest = taskDigest(directory);
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
    write();
    expect(taskDigest(loadTask(directory))).toBe(digest);
    write({ "tests/test.sh": "exit 1\n" });
    const changed = taskDigest(directory);
    write({ "tests/extra": "" });
    const extended = taskDigest(directory);
    expect(new Set([digest, changed, extended]).size).toBe(3);
  });
});

describe("the index", () => {
  test("lists every task of a folder and survives a round trip", () => {
    write();
    writeFileSync(join(root, "notes.txt"), "not a task");
    const entries = indexTasks(root, "train");
    expect(listTaskIds(root)).toEqual(["one"]);
    writeTaskIndex(root, entries);
    expect(readTaskIndex(root)).toEqual([{ id: "one", digest: taskDigest(directory), split: "train" }]);
  });

  test("finds a task only under the digest it was indexed with", () => {
    write();
    const [entry] = indexTasks(root, "train");
    expect(loadIndexedTask(root, entry!).id).toBe("one");
    write({ "instruction.md": "Something else.\n" });
    expect(refusal(() => loadIndexedTask(root, entry!)).code).toBe("MORTISE_TASK_DIGEST");
    expect(refusal(() => loadIndexedTask(root, { ...entry!, id: "../one" })).code).toBe(
      "MORTISE_TASK_UNKNOWN",
    );
    expect(refusal(() => loadIndexedTask(root, { ...entry!, id: "two" })).code).toBe("MORTISE_TASK_UNKNOWN");
  });

  test("is refused when absent or malformed, with the field", () => {
    expect(refusal(() => readTaskIndex(root)).code).toBe("MORTISE_TASK_UNKNOWN");
    write();
    writeTaskIndex(root, indexTasks(root, "train"));
    const text = readFileSync(join(root, "index.json"), "utf8");
    writeFileSync(join(root, "index.json"), text.replace('"split"', '"part"'));
    expect(refusal(() => readTaskIndex(root)).message).toContain("tasks.0.split");
  });
});
