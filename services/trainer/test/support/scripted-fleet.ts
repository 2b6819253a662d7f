/**
 * Plays proxy and scheduler on a real bus: publishes turns, seals and decided groups whose tokens are scripted and
 * whose log-probabilities are those of the published weights. What it publishes depends on the group alone, so an
 * interrupted and an uninterrupted run see the same groups.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { create, fromBinary } from "@bufbuild/protobuf";
import {
  CaptureRecordSchema,
  type ExclusionReason,
  type GroupMember,
  GroupRecordSchema,
  type MetricsRecord,
  MetricsRecordSchema,
  type StepRecord,
  subject,
  type WeightsManifest,
  WeightsManifestSchema,
} from "@mortise/contracts";
import type { Bus } from "@mortise/kernel";
import { seededRandom } from "@mortise/objectives";
import { createPolicyModel, type PolicyModel } from "@mortise/policy";
import { captured, groupRecord, member, type TrialSketch } from "./captured.js";
import { tinyConfig, tinyFiles } from "./tiny-policy.js";

const POLL_MS = 40;
const CONTEXT = [3, 1, 4];
const TOKENS = 6;

export interface GroupScript {
  readonly group: string;
  readonly rewards: readonly number[];
  readonly dropReason?: ExclusionReason;
  /** Policy version its tokens are sampled under; the current one when absent. */
  readonly version?: number;
  /** Refer to a wrong sequence on CAPTURES. */
  readonly isBroken?: boolean;
}

export class ScriptedFleet {
  readonly #bus: Bus;
  readonly #run: string;
  readonly #model: PolicyModel;
  readonly #weights = new Map<number, Uint8Array>();

  static async create(bus: Bus, run: string): Promise<ScriptedFleet> {
    const config = tinyConfig(tinyFiles().vocabSize);
    return new ScriptedFleet(bus, run, await createPolicyModel(config, { backend: "embedded" }));
  }

  private constructor(bus: Bus, run: string, model: PolicyModel) {
    this.#bus = bus;
    this.#run = run;
    this.#model = model;
  }

  /** For every version from 0 on: waits until it is current, then publishes the groups sampled under it. */
  async play(steps: readonly (readonly GroupScript[])[]): Promise<void> {
    for (const [version, groups] of steps.entries()) {
      await this.reached(version);
      for (const script of groups) await this.publishGroup(script, version);
    }
    await this.reached(steps.length);
  }

  async current(): Promise<WeightsManifest | undefined> {
    const entry = await (await this.#bus.kv("weights")).get(this.#run);
    return entry && fromBinary(WeightsManifestSchema, entry.value);
  }

  /** Waits until `version` or a later one is current, and keeps its weights for sampling. */
  async reached(version: number): Promise<void> {
    for (;;) {
      const manifest = await this.current();
      if (manifest && Number(manifest.version) >= version) {
        const objects = await this.#bus.objects("weights");
        this.#weights.set(Number(manifest.version), await objects.get(manifest.object));
        return;
      }
      await sleep(POLL_MS);
    }
  }

  async publishGroup(script: GroupScript, current: number): Promise<void> {
    const version = script.version ?? current;
    const members: GroupMember[] = [];
    for (const [slot, reward] of script.rewards.entries()) {
      members.push(
        await this.#publishTrial(`${script.group}-${slot}`, slot, reward, version, script.isBroken === true),
      );
    }
    const record = groupRecord({
      group: script.group,
      members,
      decidedVersion: current,
      ...(script.dropReason === undefined ? {} : { dropReason: script.dropReason }),
    });
    record.run = this.#run;
    await this.#bus.publish({
      subject: subject.group(this.#run, script.group),
      schema: GroupRecordSchema,
      message: record,
      dedupeId: `${this.#run}/${script.group}`,
    });
  }

  async #publishTrial(
    trial: string,
    slot: number,
    reward: number,
    version: number,
    isBroken: boolean,
  ): Promise<GroupMember> {
    const sketch = this.#sample(trial, reward, version);
    const { turn } = captured(sketch);
    turn.run = this.#run;
    const turnSequence = await this.#capture(trial, { case: "turn", value: turn }, "turn");
    const { seal } = captured(sketch, turnSequence);
    seal.run = this.#run;
    const sealSequence = await this.#capture(trial, { case: "sealed", value: seal }, "seal");
    return member(sketch, slot, { turn: isBroken ? sealSequence : turnSequence, seal: sealSequence });
  }

  async #capture(
    trial: string,
    record: ReturnType<typeof create<typeof CaptureRecordSchema>>["record"],
    id: string,
  ): Promise<number> {
    const { sequence } = await this.#bus.publish({
      subject: subject.capture(this.#run, trial),
      schema: CaptureRecordSchema,
      message: create(CaptureRecordSchema, { record }),
      dedupeId: `${this.#run}/${trial}/${id}`,
    });
    return sequence;
  }

  #sample(trial: string, reward: number, version: number): TrialSketch {
    const random = seededRandom(
      [...trial].reduce((hash, letter) => Math.imul(hash, 31) + letter.charCodeAt(0), 7),
    );
    const ids = Array.from({ length: TOKENS }, () => Math.floor(random() * 200));
    const weights = this.#weights.get(version);
    if (!weights) throw new Error(`the fleet never saw version ${version}`);
    this.#model.loadWeights(weights);
    const [logp] = this.#model.logProbabilities([{ ids: Int32Array.from([...CONTEXT, ...ids]) }]);
    return {
      trial,
      reward,
      context: CONTEXT,
      ids,
      versions: ids.map(() => version),
      logProbabilities: [...logp!.subarray(CONTEXT.length)],
    };
  }
}

/** Step records of a run, as they lie on METRICS. */
export async function stepRecords(bus: Bus, run: string): Promise<StepRecord[]> {
  const records: MetricsRecord[] = [];
  const following = await bus.follow({
    stream: "METRICS",
    filters: [`mortise.v1.metrics.${run}.step.*`],
    from: "first",
    schema: MetricsRecordSchema,
    onMessage: (record) => void records.push(record),
  });
  await following.caughtUp;
  await following.stop();
  return records.flatMap(({ record }) => (record.case === "step" ? [record.value] : []));
}

/** Waits until every decided group of the run is acknowledged. */
export async function allAcknowledged(bus: Bus, run: string): Promise<void> {
  for (;;) {
    const info = await bus.manager.consumers.info("GROUPS", `${run}_trainer`);
    if (info.num_pending === 0 && info.num_ack_pending === 0) return;
    await sleep(POLL_MS);
  }
}
