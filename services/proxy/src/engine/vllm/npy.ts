/**
 * Owns reading routed experts as vLLM sends them: the base64 of a .npy file (numpy's array format, version 1
 * to 3), C order, one row a position. Values are not looked at.
 */
import { Buffer } from "node:buffer";
import { MortiseError } from "@mortise/contracts";
import type { RoutedExperts } from "../types.js";

const MAGIC = Buffer.from("\x93NUMPY", "latin1");
const DTYPES = { "|u1": "uint8", "<u1": "uint8", "<u2": "uint16", "<i4": "int32" } as const;
const WIDTH = { uint8: 1, uint16: 2, int32: 4 } as const;

/** @param start position of the first row. @throws MortiseError MORTISE_PROVIDER_ENGINE */
export function readRoutedExperts(base64: string, start: number): RoutedExperts {
  const file = Buffer.from(base64, "base64");
  if (!file.subarray(0, MAGIC.length).equals(MAGIC)) throw malformed("it is no .npy file");
  const isLong = file[6]! >= 2;
  const headerAt = isLong ? 12 : 10;
  const headerLength = isLong ? file.readUInt32LE(8) : file.readUInt16LE(8);
  const header = file.subarray(headerAt, headerAt + headerLength).toString("latin1");
  const descr = /'descr':\s*'([^']+)'/.exec(header)?.[1] ?? "";
  const dtype = DTYPES[descr as keyof typeof DTYPES];
  if (dtype === undefined) throw malformed(`its type is ${descr || "not given"}`);
  if (!/'fortran_order':\s*False/.test(header)) throw malformed("it is not in C order");
  const shape = (/'shape':\s*\(([^)]*)\)/.exec(header)?.[1] ?? "")
    .split(",")
    .filter((part) => part.trim() !== "")
    .map(Number);
  const [rows, layers, topK] = shape;
  if (shape.length !== 3 || rows === undefined || layers === undefined || topK === undefined)
    throw malformed(`its shape is (${shape.join(", ")}), not rows, layers, experts`);
  const bytes = file.subarray(headerAt + headerLength);
  if (bytes.byteLength !== rows * layers * topK * WIDTH[dtype])
    throw malformed(`it has ${bytes.byteLength} bytes for (${shape.join(", ")}) of ${dtype}`);
  return { start, shape: [rows, layers, topK], dtype, bytes };
}

function malformed(reason: string): MortiseError {
  return new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: `Routed experts: ${reason}.` });
}
