/**
 * Owns a verification's commands in a fresh sandbox from the pristine task: a patch applied, hidden tests mounted, no
 * network. The verifier's view of a sandbox. Does not read results out of the output.
 *
 * A failure of the sandbox is an answer with `failure_code`, never a test result; a wrong request is an error.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  MortiseError,
  type PlacedFile,
  type RunOnceRequest,
  type RunOnceResponse,
  type RunOnceResponseSchema,
  Stage,
  type StrippedChange,
  StrippedChangeSchema,
} from "@mortise/contracts";
import { fromUnknown } from "@mortise/kernel";
import type {
  ExecResult,
  Mount,
  Sandbox,
  SandboxBackend,
  SandboxUser,
  TreeFile,
  Usage,
} from "./backend/types.js";
import { getContent } from "./content-store.js";
import { environmentOf } from "./environment.js";
import { limitsFor, VERIFY_MEMORY_FACTOR } from "./limits.js";
import { decodePatch } from "./patch/codec.js";
import type { Patch } from "./patch/patch.js";
import { baseOf, type ShelvedTask, type TaskShelf, TESTS_TARGET, userOf } from "./shelf/tasks.js";
import type { StartGate } from "./start-gate.js";
import { type HealthcheckFacts, waitUntilHealthy } from "./trial/healthcheck.js";
import type { ManagerContext } from "./trial/manager-context.js";
import { StageClock, type StageSpan } from "./trial/stage-clock.js";
import { filterPatch, type Stripped } from "./verification/change-filter.js";
import { checkSteps, StepRunner, withoutCodeLoading } from "./verification/steps.js";
import { pathsOfDiff } from "./verification/text-patch.js";

const DEFAULT_TIMEOUT_MS = 60_000;

export interface RunOnceTools {
  readonly context: ManagerContext;
  readonly backend: SandboxBackend;
  readonly tasks: TaskShelf;
  readonly gate: StartGate;
  /** On the host, for diffs that are being applied. */
  readonly scratchDirectory: string;
}

interface RunFacts {
  readonly environment: Readonly<Record<string, string>>;
  readonly user: SandboxUser;
  readonly signal: AbortSignal;
}

interface Ran {
  readonly answer: Exclude<Answer, RunOnceResponse>;
  readonly usage: Usage;
}

type Answer = MessageInitShape<typeof RunOnceResponseSchema>;
type Ending = Partial<
  Pick<RunOnceResponse, Exclude<keyof RunOnceResponse, "$typeName" | "$unknown" | "stages">>
>;

export class RunOnce {
  readonly #tools: RunOnceTools;
  #nRuns = 0;

  constructor(tools: RunOnceTools) {
    this.#tools = tools;
  }

  /** Rejects with the error of a wrong request: unknown task, no command, malformed patch. */
  async handle(request: RunOnceRequest, signal: AbortSignal): Promise<Answer> {
    const { backend, tasks, context } = this.#tools;
    if (request.argv.length === 0 && request.steps.length === 0)
      throw new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message: "RunOnceRequest.argv is empty" });
    checkSteps(request.steps, request.textPatches);
    const clock = new StageClock(Stage.SETUP);
    const about = { backend: backend.name, insecure: backend.isInsecure };
    const building = tasks.building(request.task);
    if (building !== undefined) {
      clock.next(Stage.BUILD);
      await building;
      clock.next(Stage.SETUP);
    }
    const task = await tasks.get(request.task);
    const { patch, stripped } = filtered(request, await this.#patch(request, task));
    let sandbox: Sandbox | undefined;
    try {
      // Each verification is a flow of its own: as one together they would fall behind the groups they belong to.
      const flow = { run: request.run, group: `verify/${request.trial}` };
      const created = await this.#tools.gate.pass(flow, () => this.#create(request, task, patch), { signal });
      sandbox = created;
      const own = tasks.resolved(request.environment, "environment");
      const ofImage = environmentOf(task.image);
      const environment = {
        ...(request.steps.length > 0 ? withoutCodeLoading(ofImage) : ofImage),
        WORKSPACE: task.workdir,
        ...task.task.environment.env,
        ...own,
      };
      const user = userOf(task, task.task.verifier);
      await this.#healthy(created, task, { environment, user, signal });
      clock.next(Stage.VERIFY);
      const ending =
        request.steps.length > 0
          ? await this.#steps(created, request, { workdir: task.workdir, environment, user, signal })
          : await this.#command(created, request, { environment, user, signal });
      clock.next(Stage.CLEANUP, ending.usage);
      return {
        ...about,
        ...ending.answer,
        stripped: stripped.map(message),
        stages: observed(context, clock),
      };
    } catch (error) {
      const known = fromUnknown(error, "MORTISE_SANDBOX_SETUP", `run for trial ${request.trial}`);
      context.metrics.runs.inc({ outcome: "refused" });
      context.log.warn({ event: "run.failed", run: request.run, trial: request.trial, err: known });
      return { ...about, failureCode: known.code, failureReason: known.message, stages: clock.spans() };
    } finally {
      await sandbox?.destroy();
    }
  }

  async #command(sandbox: Sandbox, request: RunOnceRequest, facts: RunFacts): Promise<Ran> {
    const result = await sandbox.exec({
      argv: request.argv as [string, ...string[]],
      ...facts,
      timeoutMs: request.timeoutMs || DEFAULT_TIMEOUT_MS,
      ...(request.stdin.byteLength > 0 ? { stdin: request.stdin } : {}),
    });
    this.#tools.context.metrics.runs.inc({ outcome: result.outcome.kind });
    return { answer: endingOf(result), usage: result.usage };
  }

  async #steps(
    sandbox: Sandbox,
    request: RunOnceRequest,
    facts: RunFacts & { readonly workdir: string },
  ): Promise<Ran> {
    const { scratchDirectory } = this.#tools;
    const runner = new StepRunner(sandbox, {
      ...facts,
      defaultTimeoutMs: DEFAULT_TIMEOUT_MS,
      scratchDirectory,
    });
    const { steps, textPatches, failure } = await runner.run(request.steps, request.textPatches);
    this.#tools.context.metrics.runs.inc({ outcome: failure === undefined ? "steps" : "lost" });
    const failed = failure === undefined ? {} : { failureCode: failure.code, failureReason: failure.reason };
    return {
      answer: { steps: [...steps], textPatches: [...textPatches], ...failed },
      usage: await sandbox.stats(),
    };
  }

  async #patch(request: RunOnceRequest, task: ShelvedTask): Promise<Patch | undefined> {
    if (request.withSolution) return this.#tools.tasks.solution(task);
    if (request.patch === undefined) return undefined;
    const patch = await decodePatch(await getContent(this.#tools.context.bus, request.patch));
    // A patch says only what differs from one exact tree; on another it would mean something else.
    if (patch.base !== task.workspace.digest)
      throw new MortiseError({
        code: "MORTISE_SANDBOX_PATCH",
        message: `it was taken against ${patch.base}, the task's workspace is ${task.workspace.digest}`,
      });
    return patch;
  }

  async #create(request: RunOnceRequest, task: ShelvedTask, patch: Patch | undefined): Promise<Sandbox> {
    const { backend, tasks, context } = this.#tools;
    const mounts: Mount[] = request.withTests
      ? [{ source: await tasks.tests(task), target: TESTS_TARGET }]
      : [];
    for (const { target, files } of request.mounts)
      mounts.push({
        source: await backend.prepareTree({ kind: "files", files: files.map(asTreeFile) }),
        target,
      });
    const since = performance.now();
    const sandbox = await backend.create({
      id: `once-${process.pid}-${++this.#nRuns}`,
      ...baseOf(task),
      ...(patch === undefined ? {} : { patch }),
      mounts,
      limits: limitsFor(context.site.sandbox, task.task, {
        limits: request.limits,
        overrides: request.overrides,
        memoryFactor: VERIFY_MEMORY_FACTOR,
      }),
      network: { kind: "none" },
    });
    context.metrics.started(task.image.kind, performance.now() - since);
    return sandbox;
  }

  /** What the tests talk to must be up for them as it was for the agent. */
  async #healthy(
    sandbox: Sandbox,
    { task }: ShelvedTask,
    facts: Omit<HealthcheckFacts, "clock">,
  ): Promise<void> {
    const { healthcheck } = task.environment;
    if (healthcheck === undefined) return;
    await waitUntilHealthy(sandbox, healthcheck, { ...facts, clock: this.#tools.context.clock });
  }
}

/**
 * The change without what must stay pristine: what the request says, and what a diff of the request is taken against,
 * since a diff fits one text only.
 */
function filtered(
  { filter, textPatches }: RunOnceRequest,
  patch: Patch | undefined,
): { patch: Patch | undefined; stripped: Stripped[] } {
  if (patch === undefined) return { patch, stripped: [] };
  const named = textPatches.flatMap(({ name, diff }) =>
    pathsOfDiff(name, diff).map((pattern) => ({ pattern, reason: `the diff ${name} changes it` })),
  );
  // What a diff changes comes first, and no exemption holds for it.
  const first = filterPatch(patch, { rules: named, keep: [] });
  const second = filterPatch(first.patch, { rules: filter?.rules ?? [], keep: filter?.keep ?? [] });
  return { patch: second.patch, stripped: [...first.stripped, ...second.stripped].sort(byPath) };
}

function byPath(a: Stripped, b: Stripped): number {
  return a.path < b.path ? -1 : 1;
}

function message(change: Stripped): StrippedChange {
  return create(StrippedChangeSchema, change);
}

function asTreeFile({ path, content, executable }: PlacedFile): TreeFile {
  return { path, content, isExecutable: executable };
}

function endingOf({ outcome, stdout, stderr }: ExecResult): Ending {
  const output = {
    stdout: Buffer.from(stdout.bytes),
    stderr: Buffer.from(stderr.bytes),
    outputTruncated: stdout.isTruncated || stderr.isTruncated,
  };
  switch (outcome.kind) {
    case "exited":
      return { ...output, exitCode: outcome.code };
    case "signalled":
      return { ...output, signal: outcome.signal };
    case "timeout":
      return { ...output, timedOut: true };
    case "out-of-memory":
      return { ...output, outOfMemory: true };
    case "refused":
      return { ...output, failureCode: "MORTISE_SANDBOX_SETUP", failureReason: outcome.reason };
    case "lost":
      return { ...output, failureCode: "MORTISE_SANDBOX_LOST", failureReason: outcome.reason };
    case "cancelled":
      return { ...output, failureCode: "MORTISE_SANDBOX_LOST", failureReason: "the caller went away" };
  }
}

function observed(context: ManagerContext, clock: StageClock): StageSpan[] {
  const spans = clock.spans();
  context.metrics.observe(spans);
  return spans;
}
