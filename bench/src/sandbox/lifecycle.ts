/**
 * Measures the life of one sandbox at a time: made and its first command ended (start), a further command (exec), made
 * from a snapshot with and without a command (fork), the change taken, removed (teardown). Cold is the first sandbox of
 * a backend whose caches are empty, preparing the image included.
 */
import type { Sandbox } from "@mortise/sandbox-manager";
import { median, quantile, rounded } from "../proxy/statistics.js";
import { NOTHING, run, type SandboxStand, timed } from "./stand.js";

const DIFF_LIMITS = { maxFileBytes: 1 << 20, maxTotalBytes: 8 << 20 };
/** The first ones warm caches that a running manager has warm. */
const WARM_UP = 3;

const STEPS = [
  "createMs",
  "startMs",
  "execMs",
  "networkProofMs",
  "quiesceMs",
  "diffMs",
  "teardownMs",
  "snapshotMs",
  "forkMs",
  "forkStartMs",
] as const;
type Times = Record<(typeof STEPS)[number], number[]>;

export async function measureLifecycle(stand: SandboxStand, rounds: number): Promise<object> {
  const cold = await timed(async () => run(await stand.create(), NOTHING));
  for (let round = 0; round < WARM_UP; round++) await once(stand, emptyTimes());
  const times = emptyTimes();
  for (let round = 0; round < rounds; round++) await once(stand, times);
  return {
    rounds,
    firstStartMs: rounded(cold.ms),
    steps: Object.fromEntries(STEPS.map((step) => [step, summary(times[step])])),
  };
}

async function once(stand: SandboxStand, times: Times): Promise<void> {
  const made = await timed(() => stand.create());
  const sandbox = made.value;
  const first = await timed(() => run(sandbox, NOTHING));
  times.createMs.push(made.ms);
  times.startMs.push(made.ms + first.ms);
  times.execMs.push((await timed(() => run(sandbox, NOTHING))).ms);
  times.networkProofMs.push((await timed(() => sandbox.proveNetwork())).ms);
  await run(sandbox, ["sh", "-c", "for n in 1 2 3 4 5; do echo $n > new-$n; done; rm -r src/module-1"]);
  times.quiesceMs.push((await timed(() => sandbox.quiesce())).ms);
  times.diffMs.push((await timed(() => sandbox.diff(DIFF_LIMITS))).ms);
  times.teardownMs.push((await timed(() => sandbox.destroy())).ms);
  await fork(stand, times);
}

async function fork(stand: SandboxStand, times: Times): Promise<void> {
  const template = await stand.create();
  await run(template, ["sh", "-c", "echo set up > state; rm -r src/module-2"]);
  const taken = await timed(() => template.snapshot());
  times.snapshotMs.push(taken.ms);
  const forks: Sandbox[] = [];
  for (let n = 0; n < 2; n++) {
    const made = await timed(() => stand.create({ image: taken.value }));
    forks.push(made.value);
    const first = await timed(() => run(made.value, NOTHING));
    times.forkMs.push(made.ms);
    times.forkStartMs.push(made.ms + first.ms);
  }
  for (const sandbox of [...forks, template]) await sandbox.destroy();
  await taken.value.release();
}

function emptyTimes(): Times {
  return Object.fromEntries(STEPS.map((step) => [step, [] as number[]])) as Times;
}

export function summary(values: readonly number[]) {
  return {
    p50: rounded(median(values)),
    p90: rounded(quantile(values, 0.9)),
    min: rounded(Math.min(...values)),
  };
}
