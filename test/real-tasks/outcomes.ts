/**
 * Owns running a project's tests in its image, without a network, before and after the repair, and the two lists that
 * come of it. Reads pytest's summary by itself: the lists are not made by what grades with them later.
 */
import { type Image, type RuncBackend, shell } from "@mortise/sandbox-manager";
import { WORKDIR } from "./environment.js";
import type { RealProject } from "./projects.js";
import type { WorkTree } from "./work-tree.js";

const MIB = 1024 ** 2;
const LIMITS = { cpus: 2, memoryBytes: 1024 * MIB, pids: 256, diskBytes: 256 * MIB, outputBytes: 8 * MIB };
const TIMEOUT_MS = 120_000;
const SUMMARY = /^=+ short test summary info =+$/;
const OUTCOME = /^(?<status>PASSED|FAILED|ERROR) (?<name>\S+::.+)$/;

export interface TestLists {
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
}

/** Throws when no test is repaired, or one that passed is broken. */
export async function listsOf(
  backend: RuncBackend,
  image: Image,
  project: RealProject,
  { gold, testPatch }: WorkTree,
): Promise<TestLists> {
  const before = await passedWith(backend, image, project, [testPatch]);
  const after = await passedWith(backend, image, project, [testPatch, gold]);
  const broken = [...before].filter((name) => !after.has(name));
  const failToPass = [...after].filter((name) => !before.has(name)).sort();
  if (failToPass.length === 0 || broken.length > 0)
    throw new Error(`${project.instance}: repaired ${failToPass.length}, broken ${broken.join(", ")}`);
  return { failToPass, passToPass: [...after].filter((name) => before.has(name)).sort() };
}

async function passedWith(
  backend: RuncBackend,
  image: Image,
  { instance, tests }: RealProject,
  patches: readonly string[],
): Promise<ReadonlySet<string>> {
  const sandbox = await backend.create({
    id: `lists-${patches.length}-${instance.replace(/\W/g, "-")}`,
    image,
    workspace: await backend.readTree(image, WORKDIR),
    workdir: WORKDIR,
    mounts: [],
    limits: LIMITS,
    network: { kind: "none" },
  });
  try {
    const { outcome, stdout, stderr } = await sandbox.exec({
      argv: shell(`git apply - && pytest -rA --color=no -p no:cacheprovider ${tests.join(" ")}`),
      environment: image.defaults.environment,
      user: "root",
      timeoutMs: TIMEOUT_MS,
      stdin: Buffer.from(patches.join("")),
    });
    const log = Buffer.from(stdout.bytes).toString();
    // 0: all passed; 1: some failed. Anything else is no run of the tests.
    if (outcome.kind !== "exited" || outcome.code > 1)
      throw new Error(
        `${instance}: ${JSON.stringify(outcome)} ${Buffer.from(stderr.bytes)} ${log.slice(-2000)}`,
      );
    return passedIn(log);
  } finally {
    await sandbox.destroy();
  }
}

/** A test that is reported twice, as one that errs afterwards is, has not passed. */
function passedIn(log: string): ReadonlySet<string> {
  const lines = log.split("\n");
  const found = lines.slice(lines.findIndex((line) => SUMMARY.test(line))).flatMap((line) => {
    const { status, name } = OUTCOME.exec(line)?.groups ?? {};
    return name === undefined ? [] : [{ name, hasPassed: status === "PASSED" }];
  });
  const failed = new Set(
    found.filter(({ hasPassed }) => !hasPassed).map(({ name }) => name.split(" - ")[0]!),
  );
  return new Set(
    found.filter(({ name, hasPassed }) => hasPassed && !failed.has(name)).map(({ name }) => name),
  );
}
