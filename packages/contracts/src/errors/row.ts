/** Owns what the catalogue says of every error. */

/** What the caller may do: try again, give up, treat as cancellation, or as a spent budget. */
export type Disposition = "retry" | "terminal" | "cancelled" | "budget";

/** One row of the catalogue of errors. */
export interface CatalogueRow {
  readonly disposition: Disposition;
  readonly meaning: string;
  readonly fix: string;
}
