/**
 * Owns the facts a manager publishes about a trial's sandbox. Two at most, in this order: prepared, then ended or
 * failed.
 *
 * R1  Every report names the sequence it follows: two managers, or one before and after a crash, can never both
 *     report an end. Who comes second learns it and stays silent.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  MortiseError,
  type SandboxProofSchema,
  type SandboxReport,
  SandboxReportSchema,
  subject,
} from "@mortise/contracts";
import type { Bus } from "@mortise/kernel";
import type { StageSpan } from "./stage-clock.js";

const STREAM = "TRIALS";

export interface TrialName {
  readonly run: string;
  readonly trial: string;
}

export interface ReporterOptions {
  readonly bus: Bus;
  readonly manager: string;
  readonly backend: string;
  readonly isInsecure: boolean;
}

/** What is known of a trial's sandbox whatever the fact is. */
export interface ReportContext {
  /** Sequence of the report this one follows; 0: it is the first. */
  readonly after: number;
  readonly stages: readonly StageSpan[];
  readonly proof?: ProofInit | undefined;
  readonly keptUntilMs?: number | undefined;
}

export type ProofInit = MessageInitShape<typeof SandboxProofSchema>;

/** The last fact on the stream about a trial's sandbox. */
export interface LastReport {
  readonly report: SandboxReport;
  readonly sequence: number;
}

export class Reporter {
  readonly #options: ReporterOptions;

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  async last({ run, trial }: TrialName): Promise<LastReport | undefined> {
    const found = await this.#options.bus.last(STREAM, subject.trialSandbox(run, trial), SandboxReportSchema);
    return found === undefined ? undefined : { report: found.message, sequence: found.sequence };
  }

  /**
   * Publishes a fact. Returns its sequence, or undefined when another report is there already (R1).
   */
  async publish(
    name: TrialName,
    lease: string,
    fact: MessageInitShape<typeof SandboxReportSchema>["fact"] & object,
    context: ReportContext,
  ): Promise<number | undefined> {
    const { bus, manager, backend, isInsecure } = this.#options;
    const { run, trial } = name;
    try {
      const { sequence, duplicate } = await bus.publish({
        subject: subject.trialSandbox(run, trial),
        schema: SandboxReportSchema,
        message: {
          run,
          trial,
          lease,
          manager,
          // What runs elsewhere runs in no backend of this manager's.
          backend: context.proof?.remote?.protocol || backend,
          insecure: isInsecure,
          stages: [...context.stages],
          fact,
          ...(context.proof === undefined ? {} : { proof: context.proof }),
          ...(context.keptUntilMs === undefined ? {} : { keptUntilMs: BigInt(context.keptUntilMs) }),
        },
        // An end has one id whatever it says: the first one counts.
        dedupeId: `${run}/${trial}/${fact.case === "prepared" ? "prepared" : "ended"}`,
        expectLastSubjectSequence: context.after,
      });
      // A repeat of our own publish is reported as a duplicate too; the stored lease tells the two apart.
      if (!duplicate) return sequence;
    } catch (error) {
      if (!(error instanceof MortiseError) || error.code !== "MORTISE_TRANSPORT_SEQUENCE_CONFLICT")
        throw error;
    }
    const stored = await this.last(name);
    return stored?.report.lease === lease && stored.report.fact.case === fact.case
      ? stored.sequence
      : undefined;
  }
}
