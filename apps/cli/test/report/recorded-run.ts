/**
 * Owns a small run as the services would record it, on a real nats-server and in the archive a real archiver makes of
 * it: a training group with a lost trial that was repeated, a dropped reply and a failed command, and two evaluations.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { type Message, packIds, packLogProbabilities } from "@mortise/capture";
import {
  CaptureRecordSchema,
  Delivery,
  FinishReason,
  KV_BUCKETS,
  OBJECT_BUCKETS,
  Outcome,
  RegradeSchema,
  RunConfig,
  SandboxReportSchema,
  type SessionSealed,
  SessionSealedSchema,
  STREAMS,
  Stage,
  subject,
  TerminationReason,
  TrialState,
  TrialTransitionSchema,
  type Turn,
  TurnRelation,
  TurnRole,
  TurnSchema,
  VerdictSchema,
} from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology } from "@mortise/kernel";
import { openCheckpointText, type Tokenizer } from "@mortise/policy";
import { Renderer } from "@mortise/rendering";
import { type NatsFixture, startNats } from "@mortise/testkit";
import { END_OF_TURN, replyText, writePolicy } from "../../src/conformance/policy-files.js";

export const RUN = "r1";
const ARCHIVER = fileURLToPath(new URL("../../../../services/archiver/dist/main.js", import.meta.url));
const START_MS = 1_700_000_000_000;

export interface Spoken {
  readonly text: string;
  readonly calls?: readonly { readonly name: string; readonly arguments: object }[];
  /** What the harness answers, a message a call; absent after the last turn. */
  readonly results?: readonly string[];
  /** Not delivered to its end, and not gone on from. */
  readonly isDropped?: boolean;
}

export interface RecordedTrial {
  readonly trial: string;
  readonly group: string;
  readonly slot: number;
  readonly task: string;
  readonly retry?: number;
  readonly isEvaluation?: boolean;
  readonly termination?: TerminationReason;
  readonly outcome?: Outcome;
  readonly turns: readonly Spoken[];
}

export class RecordedRun {
  readonly turns: Turn[] = [];
  readonly seals: SessionSealed[] = [];
  private child: ChildProcess | undefined;

  private constructor(
    readonly directory: string,
    readonly nats: NatsFixture,
    readonly bus: Bus,
    readonly checkpoint: string,
    private readonly tokenizer: Tokenizer,
    private readonly renderer: Renderer,
  ) {}

  static async start(): Promise<RecordedRun> {
    const directory = await mkdtemp(join(tmpdir(), "mortise-report-"));
    const { checkpoint } = await writePolicy(directory, 4096);
    const { tokenizer, chatTemplate, eosIds } = await openCheckpointText(checkpoint);
    const nats = await startNats({ withUsers: true });
    const { user, password } = nats.identity("admin");
    const log = createLog({ service: "test", level: "silent" });
    const bus = await connectBus({ url: nats.url, user, password, name: "test", log });
    await ensureTopology(bus, { streams: STREAMS, kv: KV_BUCKETS, objects: OBJECT_BUCKETS });
    const renderer = new Renderer({ chatTemplate, tokenizer, eosIds });
    const run = new RecordedRun(directory, nats, bus, checkpoint, tokenizer, renderer);
    await run.writeSite();
    return run;
  }

  get site(): string {
    return join(this.directory, "site.toml");
  }

  get archive(): string {
    return join(this.directory, "archive");
  }

  async record(trial: RecordedTrial): Promise<void> {
    const turns = this.turnsOf(trial);
    for (const turn of turns)
      await this.publish(subject.capture(RUN, trial.trial), CaptureRecordSchema, turn.turn, {
        record: { case: "turn", value: turn },
      });
    const sampled = turns.map((turn) => turn.sampledIds.length / 4);
    const seal = create(SessionSealedSchema, {
      run: RUN,
      trial: trial.trial,
      session: trial.trial,
      sampledTokens: BigInt(sampled.reduce((sum, count) => sum + count, 0)),
      evaluation: trial.isEvaluation ?? false,
      turns: turns.map((turn, at) => ({
        turn: turn.turn,
        sampledTokens: sampled[at]!,
        delivery: trial.turns[at]!.isDropped ? Delivery.ABANDONED : Delivery.DELIVERED,
      })),
    });
    this.turns.push(...turns);
    this.seals.push(seal);
    await this.publish(subject.capture(RUN, trial.trial), CaptureRecordSchema, `${trial.trial}/seal`, {
      record: { case: "sealed", value: seal },
    });
    await this.verdictOf(trial);
    await this.transitionsOf(trial, seal);
  }

  async regrade(trial: string, outcome: Outcome): Promise<void> {
    const judged = { run: RUN, trial, outcome, reward: outcome === Outcome.RESOLVED ? 1 : 0 };
    await this.publish(subject.regrade(RUN, trial), RegradeSchema, `${trial}/regrade`, {
      run: RUN,
      trial,
      judged,
    });
  }

  /** Stores what the run was started with, as the scheduler does. */
  async configure(config: object): Promise<void> {
    const record = { schema: 1, config: RunConfig.parse({ run: { id: RUN }, ...config }), tasksDigest: "00" };
    await (await this.bus.kv("runs")).put(RUN, new TextEncoder().encode(JSON.stringify(record)));
  }

  /** Lets an archiver take everything that was recorded, and ends it. */
  async makeArchive(): Promise<void> {
    const child = spawn(process.execPath, [ARCHIVER, "--site", this.site], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child = child;
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
    const exited = once(child, "exit");
    const isReady = async () => {
      const http = /"http":"([^"]+)"/.exec(output)?.[1];
      return http !== undefined && (await fetch(`http://${http}/readyz`)).ok;
    };
    while (!(await isReady())) {
      if (child.exitCode !== null) throw new Error(`the archiver ended:\n${output}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    child.kill("SIGTERM");
    await exited;
  }

  async stop(): Promise<void> {
    this.child?.kill("SIGKILL");
    await this.bus.close();
    await this.nats.stop();
    await rm(this.directory, { recursive: true, force: true });
  }

  /** Rendered and tokenised as the proxy does it; log-probabilities are −0.25 for each token. */
  private turnsOf({ trial, turns, task, isEvaluation }: RecordedTrial): Turn[] {
    const opening: Message[] = [
      { role: "system", text: "You repair code." },
      { role: "user", text: `Repair ${task}.` },
    ];
    let parent: Turn | undefined;
    let pending: Message[] = opening;
    let contextLength = 0;
    return turns.map((spoken, index) => {
      const conversation = { messages: pending, tools: [] };
      const rendered = parent
        ? this.renderer.renderExtension(
            { ...conversation, messages: [...opening, ...pending] },
            opening.length,
            true,
          )!
        : this.renderer.renderWhole(conversation);
      const sampled = this.tokenizer.encode(replyText(spoken.text, spoken.calls ?? []) + END_OF_TURN);
      const prefixLength = parent ? contextLength + parent.sampledIds.length / 4 : 0;
      const turn = create(TurnSchema, {
        run: RUN,
        trial,
        session: trial,
        thread: "main",
        turn: `${trial}-t${index}`,
        index,
        parent: parent?.turn ?? "",
        relation: parent ? TurnRelation.EXTENDS : TurnRelation.ROOT,
        role: TurnRole.TRAIN,
        roleReason: "main",
        purpose: "agent",
        harness: "claude-code",
        model: "policy",
        prefixLength,
        suffixIds: packIds(rendered.ids),
        sampledIds: packIds(sampled),
        logProbabilities: packLogProbabilities(Array.from(sampled, () => -0.25)),
        spans: [{ start: 0, length: sampled.length, policyVersion: 3n }],
        finish: FinishReason.STOP,
        toolCalls: (spoken.calls ?? []).map(({ name }, call) => ({
          id: `call_${trial}_${index}_${call}`,
          name,
          tokenEnd: sampled.length - 1,
        })),
        historyPolicy: "keep",
        dialect: "anthropic-messages",
        engine: "e1",
        evaluation: isEvaluation ?? false,
        startedAtMs: BigInt(START_MS + 1000 * index),
        endedAtMs: BigInt(START_MS + 1000 * index + 500),
      });
      if (!spoken.isDropped) {
        contextLength = prefixLength + rendered.ids.length;
        parent = turn;
        pending = (spoken.results ?? []).map((text, call) => ({
          role: "tool",
          text,
          toolCallId: `call_${trial}_${index}_${call}`,
        }));
      }
      return turn;
    });
  }

  private async verdictOf({ trial, outcome, isEvaluation }: RecordedTrial): Promise<void> {
    if (outcome === undefined) return;
    const reward = rewardOf(outcome);
    const components = reward === undefined ? [] : [{ name: "tests-passed-share", value: (1 + reward) / 2 }];
    const verdict = { run: RUN, trial, outcome, components, evaluation: isEvaluation ?? false };
    await this.publish(subject.reward(RUN, trial), VerdictSchema, `${trial}/verdict`, {
      ...verdict,
      ...(reward === undefined ? {} : { reward }),
    });
  }

  private async transitionsOf(trial: RecordedTrial, seal: SessionSealed): Promise<void> {
    const { outcome, termination = TerminationReason.COMPLETED, retry = 0 } = trial;
    const ended = { termination, harnessVersion: "2.1.332" };
    await this.publish(subject.trialSandbox(RUN, trial.trial), SandboxReportSchema, `${trial.trial}/ended`, {
      run: RUN,
      trial: trial.trial,
      fact: { case: "ended", value: ended },
    });
    const base = {
      run: RUN,
      trial: trial.trial,
      group: trial.group,
      slotInGroup: trial.slot,
      retry,
      task: { id: trial.task, digest: "00" },
      evaluation: trial.isEvaluation ?? false,
    };
    await this.publish(subject.trialState(RUN, trial.trial), TrialTransitionSchema, `${trial.trial}/0`, {
      ...base,
      state: TrialState.LAUNCHED,
    });
    const reward = outcome === undefined ? undefined : rewardOf(outcome);
    await this.publish(subject.trialState(RUN, trial.trial), TrialTransitionSchema, `${trial.trial}/1`, {
      ...base,
      state: TrialState.CLOSED,
      seal,
      termination,
      ...(outcome === undefined ? {} : { outcome }),
      ...(reward === undefined ? {} : { reward }),
      stages: [
        { stage: Stage.SETUP, wallMs: 5 },
        { stage: Stage.AGENT, wallMs: 100 },
      ],
    });
  }

  private async publish<D extends DescMessage>(
    to: string,
    schema: D,
    dedupeId: string,
    message: MessageInitShape<D>,
  ): Promise<void> {
    await this.bus.publish({ subject: to, schema, message, dedupeId });
  }

  private async writeSite(): Promise<void> {
    await mkdir(join(this.directory, "identity"));
    for (const user of ["archiver", "observer"] as const)
      await writeFile(
        join(this.directory, `identity/${user}.json`),
        JSON.stringify(this.nats.identity(user)),
        {
          mode: 0o600,
        },
      );
    await writeFile(
      this.site,
      `nats.url = "${this.nats.url}"
identity.directory = "${this.directory}/identity"
state.directory = "${this.directory}/state"
tasks.directory = "${this.directory}/tasks"
archiver.directory = "${this.archive}"
`,
    );
  }
}

function rewardOf(outcome: Outcome): number | undefined {
  if (outcome === Outcome.RESOLVED) return 1;
  return outcome === Outcome.UNRESOLVED ? 0 : undefined;
}

const READ = { name: "Read", arguments: { file_path: "/w/a.py" } };
const EDIT = { name: "Edit", arguments: { file_path: "/w/a.py", old_string: "1", new_string: "2" } };
const TEST = { name: "Bash", arguments: { command: "pytest -q" } };

const WORKS: readonly Spoken[] = [
  { text: "Looking.", calls: [READ], results: ["1\tprint(1)"] },
  { text: "", calls: [TEST], results: ["Exit code 1\n1 failed"] },
  { text: "Never seen.", isDropped: true },
  { text: "", calls: [EDIT, READ], results: ["updated", "1\tprint(2)"] },
  { text: "Done." },
];
const GIVES_UP: readonly Spoken[] = [{ text: "I cannot." }];

/** g0: a resolved, a lost and repeated, an unresolved trial of task a; before and after: tasks a and b. */
export const TRIALS: readonly RecordedTrial[] = [
  {
    trial: "before-0-0",
    group: "before",
    slot: 0,
    task: "a",
    isEvaluation: true,
    outcome: Outcome.UNRESOLVED,
    turns: GIVES_UP,
  },
  {
    trial: "before-1-0",
    group: "before",
    slot: 1,
    task: "b",
    isEvaluation: true,
    outcome: Outcome.UNRESOLVED,
    turns: GIVES_UP,
  },
  { trial: "g0-0", group: "g0", slot: 0, task: "a", outcome: Outcome.RESOLVED, turns: WORKS },
  { trial: "g0-1", group: "g0", slot: 1, task: "a", termination: TerminationReason.SANDBOX_LOST, turns: [] },
  { trial: "g0-1-r1", group: "g0", slot: 1, retry: 1, task: "a", outcome: Outcome.RESOLVED, turns: GIVES_UP },
  { trial: "g0-2", group: "g0", slot: 2, task: "a", outcome: Outcome.UNRESOLVED, turns: GIVES_UP },
  {
    trial: "after-0-0",
    group: "after",
    slot: 0,
    task: "a",
    isEvaluation: true,
    outcome: Outcome.RESOLVED,
    turns: WORKS,
  },
  {
    trial: "after-1-0",
    group: "after",
    slot: 1,
    task: "b",
    isEvaluation: true,
    outcome: Outcome.INVALID_INFRA,
    turns: GIVES_UP,
  },
];
