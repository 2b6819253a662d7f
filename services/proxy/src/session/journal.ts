/**
 * Owns the capture journal of one trial on the bus: append in order, seal, read back (C3). Every append
 * carries the sequence of the subject's last record as the writer knows it, so of two writers one loses and
 * must read again. Does not decide what is written.
 */
import { createHash } from "node:crypto";
import { create, fromBinary } from "@bufbuild/protobuf";
import {
  type CaptureRecord,
  CaptureRecordSchema,
  MortiseError,
  type SessionSealed,
  subject,
  type Turn,
} from "@mortise/contracts";
import { at, type Bus } from "@mortise/kernel";

const STREAM = "CAPTURES";

export interface JournalledTurn {
  readonly turn: Turn;
  readonly sequence: number;
}

export interface JournalContents {
  readonly turns: readonly JournalledTurn[];
  readonly seal: { readonly record: SessionSealed; readonly sequence: number } | undefined;
  /** Sequence of the last record; 0 when there is none. */
  readonly lastSequence: number;
}

export class Journal {
  private readonly bus: Bus;
  private readonly run: string;
  private readonly trial: string;

  constructor(bus: Bus, run: string, trial: string) {
    this.bus = bus;
    this.run = run;
    this.trial = trial;
  }

  /** Everything recorded for the trial, oldest first. */
  async read(): Promise<JournalContents> {
    const turns: JournalledTurn[] = [];
    let seal: JournalContents["seal"];
    let lastSequence = 0;
    for (let stored = await this.next(1); stored; stored = await this.next(lastSequence + 1)) {
      lastSequence = stored.sequence;
      const { record } = stored.capture;
      if (record.case === "turn") turns.push({ turn: record.value, sequence: stored.sequence });
      if (record.case === "sealed") seal = { record: record.value, sequence: stored.sequence };
    }
    return { turns, seal, lastSequence };
  }

  /**
   * Tries once to store a turn after `lastSequence` and resolves to its own sequence.
   * @throws MortiseError MORTISE_TRANSPORT_SEQUENCE_CONFLICT when another writer was first; UNAVAILABLE and
   *   FULL leave open whether it was stored: the same call again finds out
   */
  async appendTurn(turn: Turn, lastSequence: number): Promise<number> {
    // The id names the content too: a writer that lost the race must meet the conflict, not pass as a repeat.
    const content = createHash("sha256").update(turn.bodyDigest).update(turn.sampledIds).digest("base64url");
    const record = create(CaptureRecordSchema, { record: { case: "turn", value: turn } });
    const id = `${this.run}/${this.trial}/${turn.turn}/${content}`;
    const { sequence } = await this.publish(record, { id, lastSequence, patienceMs: 0 });
    if (sequence <= lastSequence) throw this.conflict(`turn ${turn.turn} was stored earlier`);
    return sequence;
  }

  /**
   * Stores the seal after `lastSequence`. The first seal stands for ever, whoever wrote it: meeting one that
   * is there already is a conflict, and reading again finds it.
   */
  async appendSeal(seal: SessionSealed, lastSequence: number): Promise<number> {
    const record = create(CaptureRecordSchema, { record: { case: "sealed", value: seal } });
    const id = `${this.run}/${this.trial}/sealed`;
    const { sequence, duplicate } = await this.publish(record, { id, lastSequence });
    if (duplicate) throw this.conflict("a seal is there already");
    return sequence;
  }

  private publish(
    message: CaptureRecord,
    { id, lastSequence, patienceMs }: { id: string; lastSequence: number; patienceMs?: number },
  ) {
    return this.bus.publish({
      subject: subject.capture(this.run, this.trial),
      schema: CaptureRecordSchema,
      message,
      dedupeId: id,
      expectLastSubjectSequence: lastSequence,
      ...(patienceMs !== undefined && { patienceMs }),
    });
  }

  private conflict(what: string): MortiseError {
    return new MortiseError({
      code: "MORTISE_TRANSPORT_SEQUENCE_CONFLICT",
      message: `${subject.capture(this.run, this.trial)}: ${what}.`,
    });
  }

  private async next(from: number): Promise<{ capture: CaptureRecord; sequence: number } | undefined> {
    const where = subject.capture(this.run, this.trial);
    const stored = await at("MORTISE_TRANSPORT_UNAVAILABLE", where, () =>
      this.bus.manager.direct.getMessage(STREAM, { seq: from, next_by_subj: where }),
    );
    if (!stored) return undefined;
    const capture = await at("MORTISE_TRANSPORT_DECODE", `${where} at sequence ${stored.seq}`, () =>
      fromBinary(CaptureRecordSchema, stored.data),
    );
    return { capture, sequence: stored.seq };
  }
}
