/**
 * Owns making a site: everything that was given is checked first, then what is missing is written. What is there is kept,
 * so the command may be given again with more. Starts nothing.
 */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { crossChecks, MortiseError, RunConfig, SiteConfig } from "@mortise/contracts";
import { parseStrict, readRunConfig, readSiteConfig } from "@mortise/kernel";
import { openCheckpoint } from "@mortise/policy";
import { loadIndexedTask, readTaskIndex, type Task, type TaskIndexEntry } from "@mortise/tasks";
import { parse } from "smol-toml";
import {
  BUS_USERS,
  createIdentities,
  identitiesFromUrl,
  readIdentities,
  writeIdentities,
  writePrivate,
} from "../../provision/identity.js";
import { readGreeting } from "../../provision/nats-server/version.js";
import type { SandboxRuntime } from "../../provision/runc.js";
import { assertSandboxWishes } from "../../sandbox-wishes.js";
import { natsConfText } from "../files/nats-conf.js";
import { siteFileText } from "../files/site-file.js";
import { pathsOfSite, type SitePaths, sitePaths } from "../files/site-paths.js";
import { freePort } from "../ports.js";
import { withoutUser } from "../processes/local-cluster.js";
import { underFlag, wrong } from "../refusal.js";
import { assertImages, type BackendWish, chooseBackend, limitsFor } from "./backend.js";
import { chooseEngine } from "./engine.js";
import { chooseHarness, nameOfHarness } from "./harness.js";
import { runFileText } from "./run-file.js";
import { chooseTasks, type SiteTasks, splitsOf, writeLinks } from "./tasks.js";

export interface SiteWish {
  readonly directory: string;
  /** Needed unless the site file is there. */
  readonly tasks?: string | undefined;
  readonly heldOut: number;
  readonly harness?: string | undefined;
  readonly backend: BackendWish;
  readonly engine: string;
  readonly model?: string | undefined;
  /** A run file is written when it is given. */
  readonly checkpoint?: string | undefined;
  readonly runId: string;
  /** Address of the operator's own NATS server, with its user; the site has one of its own when absent. */
  readonly natsUrl?: string | undefined;
  readonly note: (line: string) => void;
}

export interface PreparedSite {
  readonly site: string;
  /** The run file, when there is one. */
  readonly run: string | undefined;
  readonly files: readonly { readonly path: string; readonly state: "written" | "kept" }[];
  /** What was found right, one line each. */
  readonly checked: readonly string[];
  readonly warnings: readonly string[];
}

type Policy = Awaited<ReturnType<typeof openCheckpoint>>;

/** What the site file is to say, and what its tasks are. */
interface Draft {
  readonly config: SiteConfig;
  readonly text: string | undefined;
  readonly chosen: SiteTasks;
  readonly harness: string;
  readonly checked: readonly string[];
  readonly warnings: readonly string[];
}

/** @throws MortiseError of what is wrong, naming the flag; nothing is written then */
export async function prepareSite(wish: SiteWish): Promise<PreparedSite> {
  const paths = sitePaths(resolve(wish.directory));
  const policy = wish.checkpoint === undefined ? undefined : await policyAt(wish.checkpoint);
  const draft = existsSync(paths.site) ? await keptSite(paths, wish) : await newSite(paths, wish, policy);
  const runFile = join(paths.directory, "run.toml");
  const run = await runText({ runFile, wish, draft, policy });
  const files = await write(paths, wish, draft, { path: runFile, text: run.text });
  return {
    site: paths.site,
    run: existsSync(runFile) ? runFile : undefined,
    files,
    checked: [...draft.checked, ...run.checked],
    warnings: draft.warnings,
  };
}

async function newSite(paths: SitePaths, wish: SiteWish, policy: Policy | undefined): Promise<Draft> {
  const given = required(wish.tasks, "--tasks", "a directory of Harbor tasks, or an index of some");
  const wanted = required(
    wish.harness,
    "--harness",
    "a harness with an adapter, or a TOML file with a command",
  );
  const sandbox = await chooseBackend(wish.backend, wish.note);
  const chosen = await chooseTasks({
    given,
    heldOut: wish.heldOut,
    linked: join(paths.directory, "tasks"),
  });
  await assertImages(sandbox, chosen.tasks);
  const windowTokens = policy?.config.maxPositions;
  const harness = await chooseHarness({ given: wanted, backend: sandbox.backend, windowTokens });
  const modelPort = await freePort();
  const natsUrl =
    wish.natsUrl === undefined
      ? `nats://127.0.0.1:${await freePort([modelPort])}`
      : await ownServer(wish.natsUrl);
  const text = siteFileText({
    natsUrl,
    identity: paths.identity,
    state: paths.state,
    tasksDirectory: chosen.directory,
    modelPort,
    harness: { [harness.name]: harness.settings },
    sandbox: { ...sandbox, ...limitsFor(chosen.tasks) },
  });
  const config = parseStrict(SiteConfig, parse(text), { source: paths.site });
  return {
    config,
    text,
    chosen,
    harness: harness.name,
    checked: [
      tasksLine(chosen.directory, chosen.entries),
      `harness ${harness.name}${harness.hasRuntime ? ": its runtime is obtained when the site comes up" : ""}`,
      `sandbox backend ${sandbox.backend}`,
    ],
    warnings: [...notesOf(sandbox), ...chosen.warnings],
  };
}

/** What is there already decides; flags that say otherwise are told to be of no use. */
async function keptSite(paths: SitePaths, wish: SiteWish): Promise<Draft> {
  const config = await readSiteConfig(paths.site);
  const ignored = Object.entries({ "--tasks": wish.tasks, "--held-out": wish.heldOut || undefined }).flatMap(
    ([flag, value]) => (value === undefined ? [] : [flag]),
  );
  const names = Object.keys(config.harness);
  const harness = wish.harness === undefined ? names[0] : nameOfHarness(wish.harness);
  if (harness === undefined || !Object.hasOwn(config.harness, harness))
    throw wrong(
      "--harness",
      `${paths.site} has ${names.join(", ") || "no harness"}${harness === undefined ? "" : `, not ${harness}`}.`,
      `Name one of these, or add [harness.${harness ?? "<name>"}] to the file.`,
      "MORTISE_HARNESS_UNKNOWN",
    );
  const { directory } = config.tasks;
  const entries = readTaskIndex(directory);
  const tasks = entries.map((entry): Task => loadIndexedTask(directory, entry));
  return {
    config,
    text: undefined,
    chosen: { directory, entries, tasks, warnings: [] },
    harness,
    checked: [tasksLine(directory, entries), `harness ${harness}`],
    warnings: ignored.length === 0 ? [] : [`${ignored.join(", ")} not used: ${paths.site} is there already`],
  };
}

interface RunDraft {
  readonly runFile: string;
  readonly wish: SiteWish;
  readonly draft: Draft;
  readonly policy: Policy | undefined;
}

async function runText({
  runFile,
  wish,
  draft,
  policy,
}: RunDraft): Promise<{ readonly text?: string; readonly checked: readonly string[] }> {
  const { config: site, chosen, harness } = draft;
  if (existsSync(runFile)) {
    assertSandboxWishes(site, await readRunConfig(runFile));
    return { checked: [] };
  }
  if (policy === undefined) return { checked: [] };
  const engine = await chooseEngine(wish.engine, wish.model);
  const splits = splitsOf(chosen.entries);
  const count = (name: string) => chosen.entries.filter(({ split }) => split === name).length;
  const text = runFileText({
    runId: wish.runId,
    checkpoint: policy.directory,
    policy: policy.config,
    engine,
    harness,
    tasks: chosen.tasks,
    splits,
    counts: { train: count(splits.train), evaluate: count(splits.evaluate) },
  });
  const run = parseStrict(RunConfig, parse(text), { source: runFile });
  const [problem] = crossChecks(run);
  if (problem !== undefined) throw wrong(problem.field, problem.reason, "Correct what was given.");
  assertSandboxWishes(site, run);
  const { modelType, layers, maxPositions } = policy.config;
  return {
    text,
    checked: [
      `checkpoint ${policy.directory}: ${modelType}, ${layers} layers, ${maxPositions} positions`,
      `engine ${engine.kind}${engine.kind === "vllm" ? ` at ${engine.urls.join(", ")}, which serves ${engine.model}` : ""}`,
    ],
  };
}

async function write(
  paths: SitePaths,
  wish: SiteWish,
  draft: Draft,
  run: { readonly path: string; readonly text: string | undefined },
): Promise<PreparedSite["files"]> {
  const files: { path: string; state: "written" | "kept" }[] = [];
  const put = async (path: string, text: string | undefined) => {
    const state = existsSync(path) ? "kept" : "written";
    if (state === "written" && text === undefined) return;
    if (state === "written") await writePrivate(path, text!);
    files.push({ path, state });
  };
  await mkdir(paths.directory, { recursive: true, mode: 0o700 });
  writeLinks(draft.chosen);
  // The site file comes last: a start that was cut off before it is begun again from what was given.
  const places = draft.text === undefined ? pathsOfSite(paths.site, draft.config) : paths;
  files.push({ path: places.identity, state: await identities(places.identity, wish.natsUrl) });
  if (draft.text !== undefined && wish.natsUrl === undefined)
    await put(paths.natsConfig, natsConfText(paths));
  await put(run.path, run.text);
  await put(paths.site, draft.text);
  return files;
}

/** All or none: services that run hold the ones that are there. */
async function identities(directory: string, natsUrl: string | undefined): Promise<"written" | "kept"> {
  if ((await readIdentities(directory)) !== undefined) return "kept";
  const partly = BUS_USERS.filter((user) => existsSync(join(directory, `${user}.json`)));
  if (partly.length > 0)
    throw new MortiseError({
      code: "MORTISE_CONFIG_INVALID",
      message: `${directory} holds the identities of ${partly.join(", ")} only.`,
      fix: "Bring the others back, or remove the directory while the site is down to have all made anew.",
      detail: { field: "identity.directory" },
    });
  await writeIdentities(directory, natsUrl === undefined ? createIdentities() : identitiesFromUrl(natsUrl));
  return "written";
}

/** @returns the address without its user, for the site file */
async function ownServer(natsUrl: string): Promise<string> {
  await readGreeting(natsUrl);
  return withoutUser(natsUrl);
}

async function policyAt(directory: string): Promise<Policy> {
  try {
    return await openCheckpoint(resolve(directory));
  } catch (error) {
    throw underFlag("--checkpoint", error);
  }
}

function tasksLine(directory: string, entries: readonly TaskIndexEntry[]): string {
  const counts = new Map<string, number>();
  for (const { split } of entries) counts.set(split, (counts.get(split) ?? 0) + 1);
  return `${entries.length} tasks in ${directory}: ${[...counts].map(([split, n]) => `${n} ${split}`).join(", ")}`;
}

function notesOf({ notes, backend }: SandboxRuntime): string[] {
  return backend === "runc" ? [] : notes.map((line) => `sandbox: ${line}`);
}

function required(value: string | undefined, flag: string, what: string): string {
  if (value !== undefined) return value;
  throw wrong(flag, `a new site needs it: ${what}.`, `Give ${flag}. docs/own-tasks.md shows a whole one.`);
}
