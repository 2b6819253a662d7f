/**
 * Owns `mortise tasks build`: which tasks' images are built, how it is asked for, and the report. Building one is
 * task-build.ts, the builder the sandbox-manager's.
 */
import { existsSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { ImageBuild, MortiseError } from "@mortise/contracts";
import { listTaskIds } from "@mortise/tasks";
import { type BaseImages, type BuildState, indexBuilt } from "@mortise/tasks/build";
import { type Command, InvalidArgumentError, Option } from "commander";
import { EXIT_OPERATOR, note, type OutputOptions, printResult } from "../output.js";
import { listenForInterrupts } from "../site/interrupts.js";
import { atLeastOne, collected, count, positive } from "./arguments.js";
import { causeTable, failureLines } from "./build-table.js";
import { type BuildPlan, type TaskBuild, TaskBuilder } from "./task-build.js";

interface BuildFlags {
  readonly from: BuildState["from"];
  readonly base: readonly string[];
  readonly repositories: string;
  readonly network: "none" | "bridge" | "host";
  readonly buildArg: readonly string[];
  readonly allowUnpinned: boolean;
  readonly jobs: number;
  readonly timeout?: number;
  readonly limit?: number;
  readonly again: boolean;
}

export function addTasksBuild(tasks: Command, output: () => OutputOptions): void {
  tasks
    .command("build <directory>")
    .description(
      "build the images of tasks with the Docker engine of this host, keep them beside the tasks and name them there; what is built is not built again",
    )
    .addOption(
      new Option(
        "--from <what>",
        "of tasks without an image, their environment/Dockerfile; or the install_config of their records, whatever image they name",
      )
        .choices(["dockerfile", "install-config"])
        .default("dockerfile"),
    )
    .option(
      "--base [name=]<image>",
      "image to install on, of all records or of those with that python or base_image_name; may be given several times",
      collected,
      [],
    )
    .option(
      "--repositories <place>",
      "where owner/name are cloned from: a directory of clones, or the start of a URL",
      "https://github.com",
    )
    .addOption(
      new Option("--network <which>", "of the steps of a build")
        .choices(["none", "bridge", "host"])
        .default("none"),
    )
    .option("--build-arg <name=value>", "for Dockerfiles that declare it; no secret", collected, [])
    .option("--allow-unpinned", "take base images without a tag, or with latest", false)
    .option("--jobs <n>", "builds at once", atLeastOne, 2)
    .option("--timeout <seconds>", "of one build, in the place of environment.build_timeout_sec", positive)
    .option("--limit <n>", "only the first n tasks", count)
    .option("--again", "build again what failed by its own fault before, too", false)
    .action(async (directory: string, flags: BuildFlags) => {
      process.exitCode = await build(resolve(directory), flags, output());
    });
}

async function build(directory: string, flags: BuildFlags, output: OutputOptions): Promise<number> {
  const isTask = existsSync(resolve(directory, "task.toml"));
  const root = isTask ? dirname(directory) : directory;
  const ids = (isTask ? [basename(directory)] : listTaskIds(root)).slice(0, flags.limit);
  if (ids.length === 0)
    throw new MortiseError({
      code: "MORTISE_TASK_UNKNOWN",
      message: `${directory} has no task.toml, nor has a directory in it.`,
      fix: "Name a task directory, or a directory of them.",
      detail: { path: directory },
    });
  const interrupts = listenForInterrupts(() => undefined);
  try {
    const builder = await TaskBuilder.open(root, planOf(flags), interrupts.signal);
    const builds = await all(ids, flags.jobs, builder, interrupts.signal);
    const rows = builds.flatMap(({ row }) => row ?? []);
    for (const id of await indexBuilt(root, rows))
      note(`${id}: its index has another digest of it, and is left as it is`);
    interrupts.signal.throwIfAborted();
    return report(root, builds, output);
  } finally {
    interrupts.dispose();
  }
}

/** In the order of the ids; what an interrupt leaves undone has no entry. */
async function all(
  ids: readonly string[],
  nAtOnce: number,
  builder: TaskBuilder,
  stop: AbortSignal,
): Promise<TaskBuild[]> {
  const done = new Map<string, TaskBuild>();
  const waiting = [...ids];
  const work = async () => {
    for (let id = waiting.shift(); id !== undefined && !stop.aborted; id = waiting.shift()) {
      const built = await builder.build(id);
      if (built !== undefined) done.set(id, built);
    }
  };
  await Promise.all(Array.from({ length: nAtOnce }, work));
  return ids.flatMap((id) => done.get(id) ?? []);
}

function report(root: string, builds: readonly TaskBuild[], output: OutputOptions): number {
  const rows = builds.flatMap(({ row }) => row ?? []);
  const failed = rows.filter(({ state }) => state === "failed");
  const of = (kind: TaskBuild["kind"]) => builds.filter((one) => one.kind === kind).length;
  const counts = {
    built: of("built"),
    kept: of("kept"),
    failed: failed.length,
    passedOver: of("passed-over"),
  };
  printResult(output, { directory: root, ...counts, tasks: rows }, () => [
    ...failureLines(failed),
    ...(failed.length === 0 ? [] : [...causeTable(failed), ""]),
    `${counts.built} built, ${counts.kept} built before, ${counts.failed} failed, ${counts.passedOver} with an image of their own in ${root}`,
  ]);
  return failed.length === 0 ? 0 : EXIT_OPERATOR;
}

function planOf(flags: BuildFlags): BuildPlan {
  const args = Object.fromEntries(flags.buildArg.map((one) => pair(one, "--build-arg")));
  return {
    from: flags.from,
    bases: basesOf(flags.base),
    repositories: /^[a-z]+:\/\//.test(flags.repositories) ? flags.repositories : resolve(flags.repositories),
    site: ImageBuild.parse({
      args,
      network: flags.network,
      allowUnpinned: flags.allowUnpinned,
      concurrency: flags.jobs,
    }),
    again: flags.again,
    ...(flags.timeout === undefined ? {} : { timeoutSec: flags.timeout }),
  };
}

function basesOf(given: readonly string[]): BaseImages {
  const byName: Record<string, string> = {};
  let any: string | undefined;
  for (const one of given)
    if (one.includes("=")) {
      const [name, image] = pair(one, "--base");
      byName[name] = image;
    } else any = one;
  return { byName, ...(any === undefined ? {} : { any }) };
}

function pair(text: string, option: string): [string, string] {
  const at = text.indexOf("=");
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError(`${option} needs name=value.`);
  return [text.slice(0, at), text.slice(at + 1)];
}
