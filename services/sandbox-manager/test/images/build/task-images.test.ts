/** Tasks' images built by the real Docker engine of this host, and run by runc and Docker. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ImageBuild } from "@mortise/contracts";
import { createLog } from "@mortise/kernel";
import { loadTask } from "@mortise/tasks";
import Docker from "dockerode";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { DockerBackend } from "../../../dist/backend/docker/backend.js";
import { ownerMark } from "../../../dist/backend/owner.js";
import { RuncBackend } from "../../../dist/backend/runc/backend.js";
import type { ImageSpec, SandboxBackend } from "../../../dist/backend/types.js";
import { clean } from "../../../dist/cleaning/clean.js";
import { BUILT_LABEL, builtImages, removeBuiltImage } from "../../../dist/images/build/built-image.js";
import { TaskImages } from "../../../dist/images/build/task-images.js";
import { directory, file } from "../../../src/conformance/tar-builder.js";
import { gzipLayer, RegistryServer } from "../registry-server.js";

const HIDDEN = `assert solution() == 42  # ${"never to be seen ".repeat(8)}\n`;
const base = mkdtempSync(path.join(tmpdir(), "mortise-build-"));
const docker = new Docker();
const backends = {
  runc: new RuncBackend({ stateDirectory: path.join(base, "runc"), runc: "runc" }),
  docker: new DockerBackend({ stateDirectory: path.join(base, "docker") }),
};
const whyNot: string[] = [];
for (const backend of Object.values(backends)) {
  const availability = await backend.availability();
  if (!availability.ok) whyNot.push(`${backend.name}: ${availability.reason}`);
}

test.skipIf(whyNot.length === 0)(`images are built and run: ${whyNot.join("; ")}`, ({ skip }) => skip());

describe.skipIf(whyNot.length > 0)("images of tasks", () => {
  const events: { event: string; image?: string }[] = [];
  /** So that no image of an earlier run is taken for one of this. */
  const unique = `ENV TEST_RUN=${Math.random()}`;
  /** Of programs of this host, at the engine under an exact tag. */
  let from: string;
  let nTasks = 0;

  beforeAll(async () => {
    for (const backend of Object.values(backends)) await backend.start();
    const { digest } = await backends.docker.prepareImage({ kind: "host" });
    from = `mortise-host:${digest.slice(0, 16)}`;
  }, 120_000);
  afterEach(async () => {
    events.length = 0;
    for (const name of ["runc", "docker"] as const)
      for (const image of await builtImages(docker, owner(name))) await removeBuiltImage(docker, image);
  }, 60_000);
  afterAll(async () => {
    for (const backend of Object.values(backends)) await backend.stop();
    rmSync(base, { recursive: true, force: true });
  }, 60_000);

  const owner = (backend: "runc" | "docker") => ownerMark(path.join(base, backend));

  function taskWith(files: Readonly<Record<string, string>>, toml = ""): ReturnType<typeof loadTask> {
    const place = path.join(base, "tasks", `t${++nTasks}`);
    const all = {
      "task.toml": toml,
      "instruction.md": "Do it.\n",
      "tests/test.sh": HIDDEN,
      "solution/solve.sh": `${HIDDEN}# solved\n`,
      ...files,
    };
    for (const [name, content] of Object.entries(all)) {
      mkdirSync(path.dirname(path.join(place, name)), { recursive: true });
      writeFileSync(path.join(place, name), content);
    }
    return loadTask(place);
  }

  function builder(backend: "runc" | "docker", site: object = {}): TaskImages {
    const destination = { write: (line: string) => void events.push(JSON.parse(line)) };
    return new TaskImages({
      backend,
      stateDirectory: path.join(base, backend),
      site: ImageBuild.parse(site),
      registry: {},
      log: createLog({ service: "test", level: "info", destination }),
    });
  }

  const nBuilt = () => events.filter(({ event }) => event === "image.built").length;

  async function inside(backend: SandboxBackend, spec: ImageSpec, command: string): Promise<string> {
    const image = await backend.prepareImage(spec);
    const sandbox = await backend.create({
      id: `look-${++nTasks}`,
      image,
      workspace: await backend.readTree(image, image.defaults.workdir!),
      workdir: image.defaults.workdir!,
      mounts: [],
      limits: { cpus: 1, memoryBytes: 1 << 28, pids: 64, diskBytes: 1 << 25, outputBytes: 1 << 16 },
      network: { kind: "none" },
    });
    try {
      const { stdout, outcome } = await sandbox.exec({
        argv: ["/bin/sh", "-c", command],
        environment: { PATH: "/usr/bin:/bin", ...image.defaults.environment },
        cwd: image.defaults.workdir!,
        user: "root",
        timeoutMs: 20_000,
      });
      expect(outcome).toEqual({ kind: "exited", code: 0 });
      return Buffer.from(stdout.bytes).toString();
    } finally {
      await sandbox.destroy();
    }
  }

  const rejection = (promise: Promise<unknown>) =>
    promise.then(
      () => expect.fail("it was built"),
      (error) => error,
    );

  test.each(["runc", "docker"] as const)(
    "%s runs what was built, and nothing hidden is in it",
    async (name) => {
      process.env.MORTISE_TEST_SECRET = "of-the-host";
      const task = taskWith({
        "environment/Dockerfile": `ARG BASE=${from}\nFROM $BASE AS first\nRUN echo made > /made\nFROM \${BASE}
${unique}
ARG GREETING=none\nARG UNSET\nWORKDIR /work\nCOPY . .\nCOPY --from=first /made /made
RUN env > /environment; echo "$GREETING" > /greeting\nENV SETTING=of-the-image\n`,
        "environment/src/add.py": "add\n",
        "environment/left-out.log": "x",
        "environment/.dockerignore": "*.log\n",
        "environment/tests/own.py": "x",
        "environment/solution/own.py": "x",
      });
      expect(task.environment.workdir).toBeUndefined();
      const images = builder(name, { args: { GREETING: "hello", UNDECLARED: "x" } });
      const spec = await images.get(task);
      const seen = await inside(
        backends[name],
        spec,
        'pwd; find . -type f | sort; cat /made /greeting; echo "$SETTING"; ls -d /tests /solution/* 2>&1; cat /environment',
      );
      const lines = seen.split("\n");
      expect(lines.slice(0, 7)).toEqual([
        "/work",
        "./.dockerignore",
        "./Dockerfile",
        "./src/add.py",
        "made",
        "hello",
        "of-the-image",
      ]);
      expect(seen).not.toContain("MORTISE_TEST_SECRET");
      expect(seen).not.toContain("UNDECLARED");
      delete process.env.MORTISE_TEST_SECRET;

      const [{ name: tag } = {}] = (await builtImages(docker, owner(name))).filter(
        (one) => one.name !== undefined,
      );
      const { Config } = await docker.getImage(tag!).inspect();
      expect(JSON.parse(Config.Labels["io.mortise.bases"]!)).toEqual([
        { reference: from, imageId: (await docker.getImage(from).inspect()).Id },
      ]);
      // Another process asks for the same.
      const again = await builder(name, { args: { GREETING: "hello" } }).get(task);
      expect(again).toEqual(spec);
      expect(nBuilt()).toBe(1);
      expect(await builder(name).get(task)).not.toEqual(spec);
      expect(nBuilt()).toBe(2);
    },
    120_000,
  );

  test("equal environments are built once, however many ask at a time", async () => {
    const files = { "environment/Dockerfile": `FROM ${from}\n${unique}\nWORKDIR /w\nRUN echo 1 > one\n` };
    const images = builder("docker");
    const specs = await Promise.all([1, 2, 3].map(() => images.get(taskWith(files))));
    expect(new Set(specs.map((spec) => JSON.stringify(spec))).size).toBe(1);
    expect(nBuilt()).toBe(1);
  }, 60_000);

  test("a command that fails says which, and its last words, and is not run again", async () => {
    const task = taskWith({
      "environment/Dockerfile": `FROM ${from}\n${unique}\nRUN echo first; printf 'bad \\033[31mnews\\n' >&2; exit 3\nRUN touch /later\n`,
    });
    const images = builder("docker");
    const error = await rejection(images.get(task));
    expect(error).toMatchObject({ code: "MORTISE_TASK_BUILD", disposition: "terminal" });
    expect(error.detail).toMatchObject({ cause: "command-failed" });
    expect(error.message).toMatch(
      /command-failed in step 4\/\d+ : RUN echo first.*non-zero code: 3\n(?: {2}first\n {2}bad news| {2}bad news\n {2}first)$/s,
    );
    expect(await rejection(images.get(task))).toBe(error);
    expect((await docker.listContainers({ all: true, filters: labelled("docker") })).length).toBe(0);
  }, 60_000);

  test("files that are missing, hidden ones too, and steps that reach out are told apart", async () => {
    const cause = async (step: string) => {
      const error = await rejection(
        builder("docker").get(taskWith({ "environment/Dockerfile": `FROM ${from}\n${step}\n` })),
      );
      return [error.code, error.detail.cause, error.fix];
    };
    const missing = ["MORTISE_TASK_BUILD", "missing-file", expect.any(String)];
    expect(await cause("COPY nothing /nothing")).toEqual(missing);
    expect(await cause("COPY tests /tests")).toEqual(missing);
    expect(await cause("COPY ../tests /tests")).toEqual(missing);
    expect(await cause(`RUN node -e "require('dns').promises.lookup('example.org')"`)).toEqual([
      "MORTISE_TASK_BUILD",
      "network",
      expect.stringContaining("sandbox.images.build.network"),
    ]);
    expect(await cause("COPY --chmod=600 Dockerfile /x")).toEqual([
      "MORTISE_TASK_BUILD",
      "dockerfile",
      expect.any(String),
    ]);
  }, 120_000);

  test("a build that is too slow is ended at the engine too, and goes on from its last step", async () => {
    const files = {
      "environment/Dockerfile": `FROM ${from}\n${unique}\nWORKDIR /w\nRUN cat /proc/sys/kernel/random/uuid > first\nRUN sleep 6\n`,
    };
    const images = builder("docker");
    const slow = await rejection(images.get(taskWith(files, "[environment]\nbuild_timeout_sec = 4\n")));
    expect(slow).toMatchObject({ code: "MORTISE_SANDBOX_IMAGE_BUILD", disposition: "retry" });
    expect(slow.message).toMatch(/timeout in step 6\/\d+ : RUN sleep 6: environment.build_timeout_sec/);
    await expect
      .poll(async () => (await docker.listContainers({ all: true, filters: labelled("docker") })).length, {
        timeout: 15_000,
      })
      .toBe(0);
    const left = await builtImages(docker, owner("docker"));
    expect(left.map(({ name }) => name)).toEqual([undefined]);
    const patient = builder("docker", { timeoutMultiplier: 15 });
    const spec = await patient.get(taskWith(files, "[environment]\nbuild_timeout_sec = 4\n"));
    const { name } = spec as Extract<ImageSpec, { kind: "engine" }>;
    const history = (await docker.getImage(name).history()) as { Id: string }[];
    expect(history.map(({ Id }) => Id)).toContain(left[0]!.id);
  }, 120_000);

  test("what fails for reasons outside the task is tried three times, then no more", async () => {
    const task = taskWith(
      { "environment/Dockerfile": `FROM ${from}\n${unique}\nRUN sleep 30\n` },
      "[environment]\nbuild_timeout_sec = 3\n",
    );
    const images = builder("docker");
    const errors: unknown[] = [];
    for (let attempt = 0; attempt < 4; attempt++) errors.push(await rejection(images.get(task)));
    for (const error of errors)
      expect(error).toMatchObject({ code: "MORTISE_SANDBOX_IMAGE_BUILD", detail: { cause: "timeout" } });
    expect(new Set(errors.slice(0, 3)).size).toBe(3);
    expect(errors[3]).toBe(errors[2]);
  }, 60_000);

  test("what a base of a registry is made of is fetched by digest, and its triggers are read", async () => {
    const registry = await new RegistryServer().start();
    try {
      const layer = gzipLayer([directory("etc"), file("etc/of-the-base", "yes\n")]);
      const digest = registry.putImage("team/base", [layer], { tag: "1.0" });
      const task = (reference: string) =>
        taskWith({
          "environment/Dockerfile": `FROM ${registry.host}/team/base${reference}\n${unique}\nWORKDIR /w\nCOPY Dockerfile /w/\n`,
        });
      const images = builder("docker");
      const byTag = await images.get(task(":1.0"));
      const byDigest = await images.get(task(`@${digest}`));
      for (const spec of [byTag, byDigest]) {
        const { Config, RootFS } = await docker.getImage((spec as { name: string }).name).inspect();
        expect(JSON.parse(Config.Labels["io.mortise.bases"]!)).toMatchObject([{ digest }]);
        expect(RootFS.Layers![0]).toBe(layer.diffId);
      }
      const nAsked = registry.asked.length;
      await builder("docker").get(task(`@${digest}`));
      expect(registry.asked.length).toBe(nAsked);
      expect(await rejection(images.get(task(":none")))).toMatchObject({
        code: "MORTISE_SANDBOX_IMAGE_UNKNOWN",
      });
      expect(await rejection(images.get(task("")))).toMatchObject({ code: "MORTISE_TASK_BUILD" });
    } finally {
      await registry.stop();
      for (const { RepoTags, Id } of await docker.listImages({ filters: { reference: ["mortise-base"] } }))
        if ((await docker.getImage(Id).inspect()).Config.WorkingDir === "/srv")
          for (const tag of RepoTags ?? []) await docker.getImage(tag).remove();
    }
  }, 60_000);

  test("without an engine it says what would make it possible", async () => {
    const images = new TaskImages({
      backend: "runc",
      stateDirectory: path.join(base, "runc"),
      site: ImageBuild.parse({}),
      registry: {},
      log: createLog({ service: "test", level: "error" }),
      engine: { host: `unix://${path.join(base, "no.sock")}` },
    });
    const error = await rejection(images.get(taskWith({ "environment/Dockerfile": `FROM ${from}\n` })));
    expect(error).toMatchObject({
      code: "MORTISE_TASK_INVALID",
      detail: { field: "environment.docker_image" },
    });
    expect(`${error.message} ${error.fix}`).toMatch(
      /nothing here can build environment\/Dockerfile.*DOCKER_HOST/s,
    );
  });

  test("the archive for runc is whole or not there, and half of one is removed", async () => {
    const built = path.join(base, "runc/built");
    mkdirSync(built, { recursive: true });
    writeFileSync(path.join(built, "unfinished-1-x"), "half");
    const task = taskWith({
      "environment/Dockerfile": `FROM ${from}\n${unique}\nWORKDIR /w\nRUN echo 2 > two\n`,
    });
    const spec = (await builder("runc").get(task)) as Extract<ImageSpec, { kind: "local" }>;
    expect(readdirSync(built).filter((name) => name.startsWith("unfinished"))).toEqual([]);
    expect(readFileSync(spec.path).subarray(257, 262).toString()).toBe("ustar");
  }, 60_000);

  test("an image that another state directory uses too stays until that gives it up", async () => {
    const task = taskWith({
      "environment/Dockerfile": `FROM ${from}\n${unique}\nWORKDIR /w\nRUN echo 5 > five\n`,
    });
    const spec = (await builder("docker").get(task)) as Extract<ImageSpec, { kind: "engine" }>;
    await builder("runc").get(task);
    expect(nBuilt()).toBe(1);
    const [first] = await builtImages(docker, owner("docker"));
    await removeBuiltImage(docker, first!);
    expect(await builtImages(docker, owner("docker"))).toEqual([]);
    expect((await docker.getImage(spec.name).inspect()).Id).toBe(first!.id);
    const [second] = await builtImages(docker, owner("runc"));
    await removeBuiltImage(docker, second!);
    await expect(docker.getImage(first!.id).inspect()).rejects.toThrow("No such image");
  }, 60_000);

  test("clean removes what was built for a state directory and is no longer used", async () => {
    const state = path.join(base, "cleaned");
    const stateDirectory = path.join(state, "docker");
    mkdirSync(stateDirectory, { recursive: true });
    const images = new TaskImages({
      backend: "docker",
      stateDirectory,
      site: ImageBuild.parse({}),
      registry: {},
      log: createLog({ service: "test", level: "error" }),
    });
    const dockerfile = `FROM ${from}\n${unique}\nWORKDIR /w\nRUN echo 3 > three\n`;
    await images.get(taskWith({ "environment/Dockerfile": dockerfile }));
    await rejection(
      images.get(taskWith({ "environment/Dockerfile": `${dockerfile}RUN echo 4 > four\nRUN false\n` })),
    );
    const mark = ownerMark(stateDirectory);
    expect(await builtImages(docker, mark)).toHaveLength(2);
    const options = {
      stateDirectory: state,
      runc: "runc",
      maxBytes: Number.POSITIVE_INFINITY,
      now: Date.now(),
    };
    const sweep = async (more: { isDryRun: boolean; maxAgeMs: number }) =>
      (await clean({ ...options, ...more }))[0]!.images;
    expect(await sweep({ isDryRun: false, maxAgeMs: 3_600_000 })).toMatchObject({
      removed: { entries: 0 },
      kept: { entries: 2 },
    });
    expect(await sweep({ isDryRun: true, maxAgeMs: -1 })).toMatchObject({ removed: { entries: 2 } });
    expect(await builtImages(docker, mark)).toHaveLength(2);
    expect(await sweep({ isDryRun: false, maxAgeMs: -1 })).toMatchObject({ removed: { entries: 2 } });
    expect(await builtImages(docker, mark)).toEqual([]);
    expect(await docker.getImage(from).inspect()).toBeDefined();
  }, 60_000);

  function labelled(backend: "runc" | "docker") {
    return { label: [`${BUILT_LABEL}=${owner(backend)}`] };
  }
});
