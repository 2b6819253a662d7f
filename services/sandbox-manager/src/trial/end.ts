/**
 * Owns what is taken from a sandbox when its agent has ended: the change, the harness's own words and transcript, and
 * the reason they add up to. Nothing of the agent runs any more when it begins (B1).
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { SandboxEnded, SandboxEndedSchema, TerminationReason } from "@mortise/contracts";
import type { HarnessEnd } from "@mortise/harness";
import type { Bus } from "@mortise/kernel";
import { withoutSecrets } from "@mortise/tasks";
import type { ExecResult } from "../backend/types.js";
import { putContent } from "../content-store.js";
import { patchLimits } from "../limits.js";
import { encodePatch } from "../patch/codec.js";
import type { Patch } from "../patch/patch.js";
import type { Prepared } from "./setup.js";
import { shownBytes, withoutShownTests } from "./shown-tests.js";
import { terminationOf } from "./termination.js";

const OUTPUT_TAIL_BYTES = 4096;

type EndReport = Omit<
  Exclude<MessageInitShape<typeof SandboxEndedSchema>, SandboxEnded>,
  "termination" | "$typeName"
>;

export interface TrialEnd {
  readonly termination: TerminationReason;
  /** Absent when there is no result to take. */
  readonly patch?: Patch;
  /** In the harness's words; empty for a plain completion. */
  readonly why: string;
  /** What the report says besides the reason. */
  readonly report: EndReport;
}

export interface EndTools {
  readonly bus: Bus;
  /** Kept out of everything that is reported as text. */
  readonly secrets: readonly string[];
}

/** Quiesces the sandbox and takes what it leaves. */
export async function endOf(prepared: Prepared, result: ExecResult, tools: EndTools): Promise<TrialEnd> {
  const { sandbox, harness } = prepared;
  const { isModelUnreachable } = sandbox;
  await sandbox.quiesce();
  const hasResult = !["cancelled", "refused", "lost"].includes(result.outcome.kind);
  const { patch, shownChanged } = hasResult ? await ownChange(prepared) : {};
  return trialEnd(
    {
      result,
      isModelUnreachable,
      end: harness.ending(result),
      patch,
      outputTail: outputTail(result),
      harnessVersion: harness.version,
      more: {
        ...(shownChanged === undefined ? {} : { shownTestsChanged: shownChanged }),
        ...(hasResult ? await transcriptOf(prepared, tools) : {}),
      },
    },
    tools,
  );
}

export interface Ended {
  readonly result: ExecResult;
  readonly isModelUnreachable: boolean;
  readonly end: HarnessEnd;
  readonly patch: Patch | undefined;
  readonly outputTail: string;
  readonly harnessVersion: string;
  /** What the report says besides. */
  readonly more: Partial<EndReport>;
}

/** What an agent left, here or elsewhere, as it is reported: without secrets, the change among the content. */
export async function trialEnd(ended: Ended, tools: EndTools): Promise<TrialEnd> {
  const { result, isModelUnreachable, end, patch, harnessVersion, more } = ended;
  const { outcome } = result;
  const known = patch === undefined ? {} : { patch };
  const termination = terminationOf({ result, isModelUnreachable, end, ...known });
  const why = withoutSecrets(end.reason, tools.secrets);
  return {
    termination,
    why,
    ...known,
    report: {
      exitCode: outcome.kind === "exited" ? outcome.code : 0,
      signal: outcome.kind === "signalled" ? outcome.signal : "",
      outputTail: withoutSecrets(ended.outputTail, tools.secrets),
      ending: why,
      harnessVersion,
      ...(patch === undefined ? {} : await changeOf(patch, tools)),
      ...more,
    },
  };
}

/** What the agent changed of the task. A shown copy of the tests is no part of it, and takes none of its room. */
async function ownChange({
  sandbox,
  limits,
  shown,
}: Prepared): Promise<{ patch: Patch; shownChanged?: number }> {
  const room = patchLimits(limits);
  if (shown === undefined) return { patch: await sandbox.diff(room) };
  const whole = await sandbox.diff({ ...room, maxTotalBytes: room.maxTotalBytes + shownBytes(shown) });
  const { patch, changed } = withoutShownTests(whole, shown);
  return { patch, shownChanged: changed };
}

async function changeOf(patch: Patch, { bus }: EndTools) {
  return {
    patch: await putContent(bus, await encodePatch(patch)),
    patchEntries: patch.entries.length,
    leftOut: leftOutOf(patch),
  };
}

/** How many changes are not in the patch, by reason. */
function leftOutOf({ skipped }: Patch): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { reason } of skipped) counts[reason] = (counts[reason] ?? 0) + 1;
  return counts;
}

async function transcriptOf({ harness, sandbox }: Prepared, { bus, secrets }: EndTools) {
  const transcript = await harness.transcript(sandbox, secrets);
  if (transcript === undefined) return {};
  const { archive, nFiles, isTruncated } = transcript;
  return {
    transcript: await putContent(bus, archive),
    transcriptFiles: nFiles,
    transcriptTruncated: isTruncated,
  };
}

function outputTail({ stdout, stderr }: ExecResult): string {
  const tail = (bytes: Uint8Array) => Buffer.from(bytes.subarray(-OUTPUT_TAIL_BYTES / 2)).toString("utf8");
  return tail(stdout.bytes) + tail(stderr.bytes);
}
