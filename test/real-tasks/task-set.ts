/**
 * Owns making the whole set: work trees, images, lists of tests and records in SWE-bench's form, one file a task, as
 * a user would have them to import. Does not import them.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RuncBackend } from "@mortise/sandbox-manager";
import type { KeptImage } from "../../services/verifier/test/kept-image.js";
import { Environments } from "./environment.js";
import { listsOf, type TestLists } from "./outcomes.js";
import type { RealProject } from "./projects.js";
import { unpackRelease } from "./releases.js";
import { makeWorkTree, type WorkTree } from "./work-tree.js";

export interface RealTask {
  readonly project: RealProject;
  readonly workTree: WorkTree;
  readonly lists: TestLists;
  /** JSONL of one record. */
  readonly records: string;
}

export class TaskSet {
  readonly #scratch: string;
  readonly #environments: Environments;
  readonly #backend: RuncBackend;

  private constructor(scratch: string, environments: Environments, backend: RuncBackend) {
    this.#scratch = scratch;
    this.#environments = environments;
    this.#backend = backend;
  }

  /** Everything lies below `scratch`. */
  static async start(scratch: string, python: KeptImage): Promise<TaskSet> {
    const stateDirectory = join(scratch, "state");
    mkdirSync(stateDirectory, { recursive: true });
    const backend = new RuncBackend({ stateDirectory, runc: "runc" });
    await backend.start();
    return new TaskSet(scratch, new Environments(join(scratch, "images"), python), backend);
  }

  async make(project: RealProject): Promise<RealTask> {
    const workTree = makeWorkTree(project, join(this.#scratch, "trees", project.instance));
    const reference = this.#environments.add(project.instance, project, workTree.directory);
    const image = await this.#backend.prepareImage({
      kind: "local",
      path: this.#environments.directory,
      name: project.instance,
    });
    const lists = await listsOf(this.#backend, image, project, workTree);
    const records = this.#write(project.instance, recordOf({ project, workTree, lists }, reference));
    return { project, workTree, lists, records };
  }

  /**
   * The same task in an image that has files of the repaired release at `place` besides.
   * @returns JSONL of its record
   */
  makeLeaky(task: RealTask, instance: string, place: string): string {
    const reference = this.#environments.add(instance, task.project, task.workTree.directory, (root) => {
      const directory = join(root, place);
      mkdirSync(directory, { recursive: true });
      unpackRelease(task.project.repaired, directory);
    });
    return this.#write(instance, { ...recordOf(task, reference), instance_id: instance });
  }

  /** Nothing of the sandboxes is left. */
  async stop(): Promise<void> {
    await this.#backend.stop();
    rmSync(join(this.#scratch, "state"), { recursive: true, force: true });
  }

  #write(instance: string, record: object): string {
    const directory = join(this.#scratch, "records");
    mkdirSync(directory, { recursive: true });
    const file = join(directory, `${instance}.jsonl`);
    writeFileSync(file, `${JSON.stringify(record)}\n`);
    return file;
  }
}

/** Columns of SWE-bench, and those of SWE-rebench that say how to run the tests of any project. */
function recordOf({ project, workTree, lists }: Omit<RealTask, "records">, image: string): object {
  return {
    instance_id: project.instance,
    repo: project.repo,
    base_commit: workTree.baseCommit,
    version: project.base.version,
    created_at: `${project.createdAt}T00:00:00Z`,
    problem_statement: project.statement,
    hints_text: "",
    patch: workTree.gold,
    test_patch: workTree.testPatch,
    FAIL_TO_PASS: JSON.stringify(lists.failToPass),
    PASS_TO_PASS: JSON.stringify(lists.passToPass),
    image_name: image,
    install_config: { no_use_env: true, test_cmd: "pytest -rA", log_parser: "parse_log_pytest_v2" },
  };
}
