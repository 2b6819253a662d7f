/**
 * Measures what preparing sandboxes ahead of their slot is worth. Usage: node bench/dist/pool/main.js [--trials N]
 * [--slots N] [--setup-ms N] [--reply-ms N] [--turns N] [--rounds N] [--out FILE]. Real: NATS, the sandbox-manager, its
 * sandboxes, the mini harness. Stand-ins: the model answers after a fixed time, and setup waits a fixed time without
 * using a processor. Rounds alternate between without and with a pool. Prints the machine and every result as JSON.
 */
import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { load, machine } from "../proxy/machine.js";
import { type ArmResult, runArm } from "./arm.js";
import { ScriptedModel } from "./model.js";
import { PoolStand } from "./stand.js";

const { values } = parseArgs({
  options: {
    trials: { type: "string", default: "48" },
    slots: { type: "string", default: "8" },
    "setup-ms": { type: "string", default: "4000" },
    "reply-ms": { type: "string", default: "500" },
    turns: { type: "string", default: "6" },
    rounds: { type: "string", default: "2" },
    out: { type: "string" },
  },
});
const trials = Number(values.trials);
const slots = Number(values.slots);
const setupMs = Number(values["setup-ms"]);
const replyMs = Number(values["reply-ms"]);
const turns = Number(values.turns);
const rounds = Number(values.rounds);

const before = machine();
const model = await ScriptedModel.start({ replyMs, turns });
const stand = await PoolStand.start({ tasks: Math.ceil(trials / 8), setupMs, turns });
const without: ArmResult[] = [];
const withPool: ArmResult[] = [];
try {
  // Trees and the host image are made once, in neither arm.
  await runArm(stand, model, { name: "first", trials: stand.tasks.length, slots, warm: 0 });
  for (let round = 0; round < rounds; round++) {
    const arm = (name: string, warm: number) =>
      runArm(stand, model, { name: `${name}${round}`, trials, slots, warm });
    // The order turns around, so that a machine that gets busier favours neither.
    if (round % 2 === 0) without.push(await arm("without", 0));
    withPool.push(await arm("with", slots));
    if (round % 2 === 1) without.push(await arm("without", 0));
  }
} finally {
  await stand.stop();
  await model.stop();
}
const result = {
  machine: before,
  loadAfter: load(),
  settings: { trials, slots, setupMs, replyMs, turns },
  without,
  with: withPool,
  ratio: {
    concurrency: mean(withPool, "concurrency") / mean(without, "concurrency"),
    perMinute: mean(withPool, "perMinute") / mean(without, "perMinute"),
  },
};
const text = JSON.stringify(result, undefined, 2);
console.log(text);
if (values.out !== undefined) await writeFile(values.out, `${text}\n`);

function mean(results: readonly ArmResult[], key: "concurrency" | "perMinute"): number {
  return results.reduce((sum, each) => sum + each[key], 0) / results.length;
}
