/**
 * Owns verifications of Harbor tasks that write a reward: the script runs as it is, the reward file is read after every
 * process is dead. The exit code is kept and decides nothing. Does not know what a reward measures.
 *
 * H1  A reward of 0 behind an absent program or network is the machine's, and becomes invalid(infra); a success is
 *     never taken back by what was printed.
 * H2  Missing, empty, unreadable: invalid with the reason, never 0. Only a time or memory limit, which what is graded
 *     can reach, is 0.
 * H3  A reward that could not be written because of what was graded is that change's doing: invalid(tamper).
 */
import { readFileSync } from "node:fs";
import type { Task } from "@mortise/tasks";
import { z } from "zod";
import { asFilter } from "../results/results.js";
import { invalid, type Judged, unresolved } from "../run/judged.js";
import { interpreterOf, newNonce, type Plan, type PlanWish } from "../run/plan.js";
import { type Noticed, type RanStep, type RunRecord, stepNamed } from "../run/run-record.js";
import { signsIn } from "../run/signs.js";
import { MAX_REWARD_BYTES, readReward } from "./reward-files.js";
import { REWARD_DIRECTORY, WATCH_DIRECTORY, WRAPPER } from "./verify-command.js";

const VERIFY = "verify";
const GRADER = "harbor-reward/2";
const SCRIPT = "/tests/test.sh";

export function planReward(task: Task, { ref, hasChange, timeoutMs }: PlanWish): Plan {
  const nonce = newNonce();
  const script = readFileSync(task.tests.script, "utf8");
  return {
    facts: { task: { id: ref.id, digest: ref.digest }, kind: "reward", nonce, hasChannel: false, hasChange },
    steps: [
      {
        name: VERIFY,
        argv: ["/bin/sh", "-c", WRAPPER, "verify", ...interpreterOf(script), SCRIPT],
        timeoutMs,
        stdin: new TextEncoder().encode(`${nonce}\n`),
        put: [
          { directory: REWARD_DIRECTORY },
          { directory: "/logs/artifacts" },
          { directory: "/logs/agent" },
          { directory: WATCH_DIRECTORY },
        ],
        collect: [{ directory: REWARD_DIRECTORY, maxFileBytes: MAX_REWARD_BYTES }],
      },
    ],
    request: { filter: asFilter(task) },
  };
}

export function judgeRewardRun(_task: Task, run: RunRecord): Judged {
  const step = stepNamed(run, VERIFY);
  if (step === undefined) return invalid("infra", "the verifier did not run", { grader: GRADER });
  const ending = endingOf(step, run.nonce);
  const findings = noticed(ending);
  const parts = { grader: GRADER, findings };
  if (ending?.late === true)
    return invalid("tamper", "the reward was written again after the verifier had ended", {
      ...parts,
      conclusive: true,
    });
  if (step.timedOut) return unresolved("the verifier reached its time limit", parts);
  if (step.outOfMemory) return unresolved("the verifier reached its memory limit", parts);
  const reading = readReward(step.files);
  const signs = signsIn(step.stderr, step.stdout);
  if (reading.kind === "none") {
    if (reading.fault === "contradiction") return invalid("tamper", reading.reason, parts);
    if (run.hasChange && ending !== undefined && ending.blocked !== "")
      return invalid("tamper", `what was graded keeps the verifier from writing ${ending.blocked}`, parts); // H3
    const reason = [reading.reason, `exit code ${step.exitCode}`, ...signs].join("; ");
    return invalid(reading.fault === "task" ? "task" : "infra", reason, parts);
  }
  const { reward, components } = reading;
  const full = { ...parts, components };
  if (reward === 0 && signs.length > 0) return invalid("infra", `reward 0 behind ${signs.join("; ")}`, full); // H1
  return {
    ...full,
    tests: [],
    outcome: reward === 1 ? "resolved" : "unresolved",
    reward,
    reason: `the verifier gave ${reward}`,
    conclusive: false,
  };
}

const Ending = z.object({
  nonce: z.string(),
  code: z.int(),
  left: z.int(),
  late: z.boolean(),
  blocked: z.string().default(""),
});

/** The wrapper's record, found by the nonce: what outlived the script may have written behind it. */
function endingOf(step: RanStep, nonce: string): z.infer<typeof Ending> | undefined {
  const line = Buffer.from(step.stderr)
    .toString()
    .split("\n")
    .find((candidate) => candidate.startsWith("{") && candidate.includes(nonce));
  try {
    const ending = Ending.safeParse(JSON.parse(line ?? ""));
    return ending.success && ending.data.nonce === nonce ? ending.data : undefined;
  } catch {
    return undefined;
  }
}

function noticed(ending: z.infer<typeof Ending> | undefined): Noticed[] {
  if (ending === undefined)
    return [{ subject: "verifier-cut", detail: "the verifier's own end was not seen" }];
  if (ending.left === 0) return [];
  return [{ subject: "processes-left", detail: `${ending.left} processes outlived the verifier's script` }];
}
