/**
 * Owns how errors of images are made: one short constructor a code. Meanings and fixes are in the catalogue.
 */
import { MortiseError } from "@mortise/contracts";

/** The layer is damaged or was made to do harm. @param entry byte string of the name, as in the archive */
export function layerRefused(reason: string, entry?: string): MortiseError {
  const where = entry === undefined ? "" : `entry ${printable(entry)}: `;
  return new MortiseError({ code: "MORTISE_SANDBOX_IMAGE_LAYER", message: `${where}${reason}` });
}

export function overLimit(field: string, limit: number): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_IMAGE_OVER_LIMIT", message: `${field} is ${limit}.` });
}

/** A name for people: bytes outside printable ASCII are escaped, and length is bounded. */
export function printable(name: string): string {
  const shown = name.length > 200 ? `${name.slice(0, 200)}…` : name;
  return JSON.stringify(shown.replace(/[^\x20-\x7e…]/g, escapeByte));
}

function escapeByte(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16).padStart(2, "0")}`;
}
