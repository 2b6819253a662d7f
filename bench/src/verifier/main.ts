/**
 * Measures verifications a minute at several concurrencies. Usage: node bench/dist/verifier/main.js
 * [--tasks=DIRECTORY --task=ID] [--count=N] [--concurrency=1,2,4,8] [--out=FILE]. Without --tasks a bundled task is
 * graded. Each verification is whole: from the work item to the verdict, in a fresh sandbox of runc, of a task nobody
 * changed. Needs root on Linux, runc, and the services built. Prints the machine and every result as JSON.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { Outcome } from "@mortise/contracts";
import { demoFamily, taskDigest, writeDemoTasks } from "@mortise/tasks";
import { load, machine } from "../proxy/machine.js";
import { type TaskName, VerifierStand } from "./stand.js";

const { values } = parseArgs({
  options: {
    tasks: { type: "string" },
    task: { type: "string" },
    count: { type: "string", default: "40" },
    concurrency: { type: "string", default: "1,2,4,8" },
    out: { type: "string" },
  },
});

interface Arm {
  readonly concurrency: number;
  readonly count: number;
  readonly perMinute: number;
  readonly medianMs: number;
  readonly maxMs: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly loadBefore: number;
  readonly loadAfter: number;
}

async function measure(tasks: string, task: TaskName, concurrency: number, count: number): Promise<Arm> {
  const stand = await VerifierStand.start({ tasks, concurrency });
  try {
    await stand.verify(task); // The image and the trees are prepared once, not for each.
    const loadBefore = load();
    const times: number[] = [];
    const outcomes: Record<string, number> = {};
    let left = count;
    const startedAt = performance.now();
    const lane = async () => {
      while (left-- > 0) {
        const since = performance.now();
        const { outcome } = await stand.verify(task);
        times.push(performance.now() - since);
        outcomes[Outcome[outcome]] = (outcomes[Outcome[outcome]] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: concurrency }, lane));
    const minutes = (performance.now() - startedAt) / 60_000;
    times.sort((a, b) => a - b);
    return {
      concurrency,
      count,
      perMinute: Math.round(count / minutes),
      medianMs: Math.round(times[Math.floor(times.length / 2)]!),
      maxMs: Math.round(times.at(-1)!),
      outcomes,
      loadBefore,
      loadAfter: load(),
    };
  } finally {
    await stand.stop();
  }
}

const directory = mkdtempSync(path.join(tmpdir(), "mortise-bench-tasks-"));
try {
  const tasks = values.tasks ?? path.join(directory, "tasks");
  if (values.tasks === undefined) writeDemoTasks(tasks, demoFamily().slice(0, 1));
  const id = values.task ?? demoFamily()[0]!.id;
  const task = { id, digest: taskDigest(path.join(tasks, id)) };
  const arms: Arm[] = [];
  const before = machine();
  for (const concurrency of values.concurrency.split(",").map(Number))
    arms.push(await measure(tasks, task, concurrency, Number(values.count)));
  const text = JSON.stringify({ machine: before, task: id, arms }, undefined, 2);
  console.log(text);
  if (values.out !== undefined) await writeFile(values.out, `${text}\n`);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
