/**
 * Owns what the behaviour scan reads: what an agent said and called, turn by turn, and what its tools answered. The
 * same form for every harness and model API. Does not know where it came from (captured turns, a recording).
 */

export interface TranscriptCall {
  readonly name: string;
  /** As the policy wrote them: JSON for most tools, free text for some; may be malformed. */
  readonly arguments: string;
  /** The reply ended inside the call. */
  readonly isCut: boolean;
  /** What the harness answered; undefined where nothing followed. */
  readonly result: string | undefined;
}

export interface TranscriptTurn {
  /** Visible text beside the calls. */
  readonly text: string;
  readonly calls: readonly TranscriptCall[];
}

/** One conversation of a trial: its main agent's unless said otherwise. */
export interface Transcript {
  /** As an adapter is named; anything else is read by the names of its tools alone. */
  readonly harness: string;
  /** Names of the tools the harness offered; undefined where that is not known. */
  readonly offered: ReadonlySet<string> | undefined;
  /** In the order they were sampled. */
  readonly turns: readonly TranscriptTurn[];
}
