/** Plans from install configurations, names, states, causes, and what is written into a task. No engine. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type BuildState,
  buildCauseOf,
  buildInputs,
  indexBuilt,
  installPlanOf,
  isWorthRetrying,
  readBuildState,
  withDockerImage,
  writeBuildState,
  writeRepositoryPack,
} from "../../src/build/index.js";
import { digestOfFiles } from "../../src/harbor/digest.js";
import { readTaskIndex, writeTaskIndex } from "../../src/harbor/task-index.js";
import { SWE_GYM, SWE_REBENCH, SWE_REBENCH_2 } from "../import/rows.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "mortise-build-plan-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const PLACE = { workdir: "/testbed", place: "t/tests/config.json" };
const plan = (record: object, bases = {}) =>
  installPlanOf(record as Record<string, unknown>, { byName: {}, ...bases }, PLACE);
const config = (changes: object, record: object = SWE_REBENCH) => ({
  ...record,
  install_config: { ...(SWE_REBENCH.install_config as object), ...changes },
});
const fileOf = (made: ReturnType<typeof plan>, name: string) =>
  made.files.find(({ path }) => path === name)?.content;
const refusal = (act: () => unknown) => {
  try {
    act();
  } catch (error) {
    return error as MortiseError;
  }
  return expect.fail("it was not refused");
};

describe("a plan", () => {
  test("has a step for the repository and for each part of the installation, in order", () => {
    const made = plan(SWE_REBENCH);
    expect(made).toMatchObject({ repository: "0b01001001/spectree", base: "python:3.9-bookworm" });
    const dockerfile = String(fileOf(made, "Dockerfile"));
    expect(dockerfile.split("\n")[0]).toBe("FROM python:3.9-bookworm");
    expect(dockerfile).toContain('ENV MODE="a b"');
    expect(dockerfile.match(/\d-[a-z-]+\.sh(?= &&)/g)).toEqual([
      "1-pre-install.sh",
      "2-dependencies.sh",
      "3-install.sh",
      "4-test-command.sh",
    ]);
    expect(fileOf(made, "1-pre-install.sh")).toBe("set -e\ncd /testbed\napt-get update\n");
    expect(fileOf(made, "2-dependencies.sh")).toMatch(/pip install .* pytest\n$/);
    expect(fileOf(made, "3-install.sh")).toContain("pip install -e .[dev]");
    expect(fileOf(made, "4-test-command.sh")).toContain("command -v pytest");
  });

  test("says nothing of patches, tests and statement", () => {
    const text = plan(SWE_REBENCH)
      .files.map(({ content }) => content)
      .join("");
    for (const hidden of ["add subtracts", "return a", "test_two", "tests/test_sum.py"])
      expect(text).not.toContain(hidden);
  });

  test("takes frozen requirements where they are, without what cannot be installed elsewhere", () => {
    const requirements =
      "attrs==23.1.0 # a\n-e git+https://x/y@1#egg=z\npytest @ file:///croot/pytest_1/work\n\nidna>=3; python_version<'4'\n";
    const made = plan({ ...config({ reqs_path: ["r.txt"] }), requirements });
    expect(fileOf(made, "2-dependencies.sh")).toMatch(
      / attrs==23\.1\.0 pytest 'idna>=3; python_version<'\\''4'\\'''\n.*pip install .* pytest\n$/,
    );
    expect(fileOf(plan(config({ reqs_path: ["r.txt", "dev.txt"] })), "2-dependencies.sh")).toMatch(
      /-r r\.txt\n.*-r dev\.txt\n/,
    );
  });

  test.each([
    ["install_config", SWE_GYM, {}],
    ["install_config.base_image_name", SWE_REBENCH_2, {}],
    ["install_config.python", config({ python: undefined }), {}],
    ["install_config.packages", config({ packages: "environment.yml" }), {}],
    ["install_config.packages", config({ packages: "numpy scipy" }), {}],
    ["install_config.env_vars", config({ env_vars: { "A-B": "1" } }), {}],
    ["install_config.test_cmd", config({ test_cmd: null }), {}],
    ["base_commit", { ...SWE_REBENCH, base_commit: "main" }, {}],
  ])("that cannot be is refused by %s", (field, record, bases) => {
    expect(refusal(() => plan(record, bases))).toMatchObject({
      code: "MORTISE_TASK_RECORD",
      detail: { field },
    });
  });

  test("starts from what is given for its Python or base image, else for all", () => {
    const byName = { "3.9": "a:1", python_base_310: "b:1" };
    expect(plan(SWE_REBENCH, { byName }).base).toBe("a:1");
    expect(plan(SWE_REBENCH_2, { byName }).base).toBe("b:1");
    expect(plan(config({ python: "3.8" }), { byName, any: "c:1" }).base).toBe("c:1");
  });

  test("has one name for one record, and another as soon as anything it reads differs", () => {
    const nameOf = (record: object, settings = {}) =>
      buildInputs(digestOfFiles(plan(record).files), { network: "none", ...settings });
    const first = nameOf(SWE_REBENCH);
    expect(nameOf({ ...SWE_REBENCH, problem_statement: "other", patch: "other" })).toBe(first);
    const others = [
      nameOf(SWE_REBENCH, { network: "host" }),
      ...[
        { install: "pip install ." },
        { pre_install: [] },
        { pip_packages: ["pytest==8"] },
        { env_vars: { MODE: "b" } },
        { python: "3.10" },
      ].map((changes) => nameOf(config(changes))),
    ];
    expect(new Set([first, ...others]).size).toBe(7);
  });
});

describe("the pack of a repository", () => {
  const git = (at: string, ...args: string[]) =>
    execFileSync("git", ["-C", at, "-c", "user.name=t", "-c", "user.email=t@t", ...args], {
      encoding: "utf8",
    }).trim();

  test("is the same bytes each time, has the commit and nothing before or after it", async () => {
    const source = join(directory, "repos", "o", "n");
    mkdirSync(source, { recursive: true });
    git(source, "init", "-q");
    const commits = ["before", "now", "after"].map((text) => {
      writeFileSync(join(source, "file"), `${text} ${"x".repeat(99)}\n`);
      git(source, "add", "-A");
      git(source, "commit", "-qm", text);
      return git(source, "rev-parse", "HEAD");
    });
    const packs = [];
    for (const name of ["a", "b"]) {
      await writeRepositoryPack(
        join(directory, "repos"),
        { repository: "o/n", commit: commits[1]! },
        join(directory, name),
      );
      packs.push(
        createHash("sha256")
          .update(readFileSync(join(directory, name)))
          .digest("hex"),
      );
    }
    expect(packs[0]).toBe(packs[1]);
    const into = join(directory, "into");
    execFileSync("git", ["init", "-q", into]);
    execFileSync("git", ["-C", into, "unpack-objects", "-q"], { input: readFileSync(join(directory, "a")) });
    writeFileSync(join(into, ".git/shallow"), `${commits[1]}\n`);
    git(into, "checkout", "-q", "--detach", commits[1]!);
    expect(readFileSync(join(into, "file"), "utf8")).toMatch(/^now/);
    const all = git(into, "cat-file", "--batch-all-objects", "--batch-check");
    expect(all.match(/commit/g)).toHaveLength(1);
    expect(all).not.toContain(commits[2]);
  });

  test("that cannot be had says from where and of which field", async () => {
    const asked = writeRepositoryPack(
      directory,
      { repository: "o/none", commit: "0".repeat(40) },
      join(directory, "a"),
    );
    await expect(asked).rejects.toMatchObject({
      code: "MORTISE_TASK_SOURCE",
      detail: { field: "base_commit" },
    });
    await expect(asked).rejects.toThrow(/o\/none at 0+ cannot be taken from/);
  });
});

describe("causes", () => {
  const failed = (message: string, detail: object = { cause: "command-failed" }) =>
    buildCauseOf(new MortiseError({ code: "MORTISE_TASK_BUILD", message, detail: { ...detail } }));

  test.each([
    ["resolver", "E: Unable to locate package libfoo-dev"],
    ["resolver", "E: Package 'python2.7' has no installation candidate"],
    ["resolver", "ERROR: No matching distribution found for numpy==0.0.1"],
    ["resolver", "ERROR: ResolutionImpossible: for help visit"],
    ["resolver", "npm error code ERESOLVE"],
    [
      "resolver",
      "ERROR: Could not find a version that satisfies the requirement setuptools\nerror: subprocess-exited-with-error\nERROR: Failed to build 'x'",
    ],
    ["compile", "error: command '/usr/bin/x86_64-linux-gnu-gcc' failed with exit code 1"],
    ["compile", "src/a.c:1:10: fatal error: foo.h: No such file or directory"],
    ["compile", "make: *** [Makefile:4: all] Error 2"],
    ["compile", "error[E0425]: cannot find value"],
    ["compile", "ERROR: Failed building wheel for lxml"],
    ["command", "sh: 1: nothing: not found"],
  ])("%s: %s", (cause, said) =>
    expect(failed(`t: command-failed in step 3/5 : RUN x || echo failed to build: code 1\n  ${said}`)).toBe(
      cause,
    ),
  );

  test("of the builder and of images keep their kind, and only those of the place are tried again", () => {
    const code = (name: string, message = "x") =>
      buildCauseOf(new MortiseError({ code: name as "MORTISE_TASK_BUILD", message }));
    expect(failed("x", { cause: "out-of-space" })).toBe("disk");
    expect(failed("x", { cause: "timeout" })).toBe("timeout");
    expect(failed("x", { field: "environment/Dockerfile" })).toBe("dockerfile");
    expect(failed("x", { field: "environment/link" })).toBe("missing-file");
    expect(code("MORTISE_SANDBOX_IMAGE_UNKNOWN")).toBe("base-image");
    expect(code("MORTISE_SANDBOX_IMAGE_REGISTRY")).toBe("network");
    expect(code("MORTISE_TASK_RECORD")).toBe("refused");
    expect(code("MORTISE_SANDBOX_IMAGE_BUILD", "base image a:1: the engine does not take it: x")).toBe(
      "base-image",
    );
    expect(code("MORTISE_SANDBOX_IMAGE_BUILD", "t is over; base images were not there.")).toBe("timeout");
    expect((["timeout", "network", "disk", "base-image"] as const).every(isWorthRetrying)).toBe(true);
    expect((["refused", "resolver", "compile", "dockerfile"] as const).some(isWorthRetrying)).toBe(false);
  });
});

const ROW: BuildState = {
  schema: 1,
  task: "t",
  from: "dockerfile",
  state: "building",
  inputs: "1".repeat(64),
  attempts: 1,
  startedAt: "2026-01-01T00:00:00.000Z",
};

describe("states", () => {
  test("are read as they were written; a damaged one names its file", () => {
    expect(readBuildState(directory, "t")).toBeUndefined();
    writeBuildState(directory, ROW);
    writeBuildState(directory, { ...ROW, state: "failed", cause: "compile", message: "m" });
    expect(readBuildState(directory, "t")).toMatchObject({ state: "failed", cause: "compile" });
    writeFileSync(join(directory, "builds/t.json"), JSON.stringify({ ...ROW, state: "done" }));
    expect(refusal(() => readBuildState(directory, "t")).message).toContain(join("builds", "t.json"));
  });

  test("bring the index up to what was built, and leave a task alone that is neither before nor after", async () => {
    const [before, after, other] = ["2", "3", "4"].map((digit) => digit.repeat(64)) as [
      string,
      string,
      string,
    ];
    const entries = ["t", "u", "v"].map((id) => ({
      id,
      digest: id === "v" ? other : before,
      split: "train",
    }));
    writeTaskIndex(directory, entries);
    const built = { ...ROW, state: "built" as const, image: "i", digestBefore: before, digestAfter: after };
    const rows = [built, { ...built, task: "v" }];
    for (let time = 0; time < 2; time++) expect(await indexBuilt(directory, rows)).toEqual(["v"]);
    expect(readTaskIndex(directory).map(({ digest }) => digest)).toEqual([after, before, other]);
  });
});

describe("environment.docker_image", () => {
  test("is put into a task.toml that stays as it is otherwise", () => {
    const text =
      '# mine\n[environment]  # here\ncpus = 1\n# docker_image = "no"\n\n[verifier]\ndocker_image_of = 1\n';
    const once = withDockerImage(text, "a:1");
    expect(once).toBe(text.replace("# here\n", '# here\ndocker_image = "a:1"\n'));
    expect(withDockerImage(once, "b:2")).toBe(once.replace("a:1", "b:2"));
    expect(withDockerImage("", "a:1")).toBe('\n[environment]\ndocker_image = "a:1"\n');
  });

  test("is not put where another key would change", () => {
    expect(refusal(() => withDockerImage("environment = { cpus = 1 }\n", "a:1"))).toMatchObject({
      code: "MORTISE_TASK_INVALID",
      detail: { field: "environment.docker_image" },
    });
  });
});
