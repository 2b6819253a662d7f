/**
 * Owns what a run's streams must say once it is finished, whatever was killed on the way. They are read from a
 * nats-server of the test's own over the run's stored streams, not through anything that took part in the run.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { provisionNatsServer } from "@mortise/cli";
import {
  CaptureRecordSchema,
  filter,
  GroupDisposition,
  type GroupRecord,
  GroupRecordSchema,
  MemberDisposition,
  MetricsRecordSchema,
  type StepRecord,
  TrialState,
  type TrialTransition,
  TrialTransitionSchema,
  type Verdict,
  VerdictSchema,
} from "@mortise/contracts";
import { type Bus, connectBus, createLog, readSiteConfig } from "@mortise/kernel";
import { expect } from "vitest";
import { root } from "./quickstart-process.js";

export interface Records {
  readonly groups: readonly GroupRecord[];
  readonly transitions: readonly TrialTransition[];
  readonly verdicts: readonly Verdict[];
  readonly steps: readonly StepRecord[];
  /** Trials in the order their sessions were sealed. */
  readonly sealed: readonly string[];
}

/** A connection with the observer's permissions. */
export async function observe(directory: string): Promise<Bus> {
  const site = await readSiteConfig(join(directory, "site.toml"));
  const identity = JSON.parse(readFileSync(join(directory, "identity", "observer.json"), "utf8")) as {
    user: string;
    password: string;
  };
  const log = createLog({ service: "test", level: "fatal" });
  return connectBus({
    url: site.nats.url,
    user: identity.user,
    password: identity.password,
    name: "test",
    log,
  });
}

/** Everything the run recorded; call it when the run's own server has ended. */
export async function readRecords(directory: string, run: string): Promise<Records> {
  const nats = await provisionNatsServer({
    cacheDirectory: join(root, ".mortise", "cache"),
    onProgress() {},
  });
  if (nats.kind !== "binary") throw new Error("these tests start their own nats-server: unset NATS_URL");
  const server = spawn(nats.path, ["--config", join(directory, "nats.conf")], { stdio: "ignore" });
  try {
    const bus = await observe(directory);
    try {
      return await readStreams(bus, run);
    } finally {
      await bus.close();
    }
  } finally {
    server.kill("SIGTERM");
    await once(server, "exit");
  }
}

async function readStreams(bus: Bus, run: string): Promise<Records> {
  const groups: GroupRecord[] = [];
  const transitions: TrialTransition[] = [];
  const verdicts: Verdict[] = [];
  const steps: StepRecord[] = [];
  const sealed: string[] = [];
  const from = "first" as const;
  const followings = await Promise.all([
    bus.follow({
      stream: "GROUPS",
      filters: [filter.groups(run)],
      from,
      schema: GroupRecordSchema,
      onMessage: (group) => void groups.push(group),
    }),
    bus.follow({
      stream: "TRIALS",
      filters: [filter.trialStates(run)],
      from,
      schema: TrialTransitionSchema,
      onMessage: (transition) => void transitions.push(transition),
    }),
    bus.follow({
      stream: "REWARDS",
      filters: [filter.rewards(run)],
      from,
      schema: VerdictSchema,
      onMessage: (verdict) => void verdicts.push(verdict),
    }),
    bus.follow({
      stream: "METRICS",
      filters: [filter.metrics(run)],
      from,
      schema: MetricsRecordSchema,
      onMessage: ({ record }) => {
        if (record.case === "step") steps.push(record.value);
      },
    }),
    bus.follow({
      stream: "CAPTURES",
      filters: [filter.captures(run)],
      from,
      schema: CaptureRecordSchema,
      onMessage: ({ record }) => {
        if (record.case === "sealed") sealed.push(record.value.trial);
      },
    }),
  ]);
  await Promise.all(followings.map(({ caughtUp }) => caughtUp));
  await Promise.all(followings.map((following) => following.stop()));
  return { groups, transitions, verdicts, steps, sealed };
}

/** No trial, verdict, group or step is counted twice, and every place of every group was filled once. */
export function expectCountedOnce(
  records: Records,
  wanted: { readonly steps: number; readonly groupSize: number },
) {
  const { groups, transitions, verdicts, steps, sealed } = records;
  expect(steps.map(({ step }) => Number(step))).toEqual(
    Array.from({ length: wanted.steps }, (_, i) => i + 1),
  );
  expectDistinct(
    "group records",
    groups.map(({ group }) => group),
  );
  expectDistinct(
    "verdicts",
    verdicts.map(({ trial }) => trial),
  );
  expectDistinct("seals", sealed);
  expectDistinct(
    "groups of steps",
    steps.flatMap((step) => step.groups),
  );
  expectDistinct(
    "trained trials",
    steps.flatMap(({ trials }) => trials.map(({ trial }) => trial)),
  );
  expectDistinct(
    "members",
    groups.flatMap(({ members }) => members.map(({ trial }) => trial)),
  );

  const closed = transitions.filter(({ state }) => state === TrialState.CLOSED).map(({ trial }) => trial);
  expectDistinct("ended trials", closed);
  const launched = new Set(transitions.map(({ trial }) => trial));
  expect([...launched].filter((trial) => !closed.includes(trial))).toEqual([]);

  for (const group of groups) {
    const places = Map.groupBy(group.members, (member) => member.slotInGroup);
    expect([...places.keys()].sort(), group.group).toEqual(
      Array.from({ length: wanted.groupSize }, (_, i) => i),
    );
    if (group.disposition !== GroupDisposition.ADMITTED) continue;
    for (const [place, members] of places) {
      const valid = members.filter(({ disposition }) => disposition !== MemberDisposition.EXCLUDED);
      expect(valid.length, `${group.group}, place ${place}`).toBeLessThanOrEqual(1);
    }
  }
}

function expectDistinct(what: string, ids: readonly string[]): void {
  const twice = ids.filter((id, at) => ids.indexOf(id) !== at);
  expect(twice, `${what} recorded twice`).toEqual([]);
}
