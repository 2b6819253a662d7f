/**
 * Owns reading `cargo test`: `test a::b ... ok`. An ignored test is no result. Names of doc tests hold spaces
 * (`src/lib.rs - f (line 3)`).
 */
import { linewise } from "../line-parser.js";

const SEPARATOR = " ... ";

export const cargo = linewise({
  name: "cargo",
  reads: "`cargo test`",
  startsWith: "t",
  read: (line) => {
    if (!line.startsWith("test ")) return undefined;
    const at = line.lastIndexOf(SEPARATOR);
    if (at < 0) return undefined;
    const name = line.slice("test ".length, at).trim();
    const outcome = line.slice(at + SEPARATOR.length).trim();
    if (name === "") return undefined;
    if (outcome === "ok") return [name, "passed"];
    return outcome === "FAILED" ? [name, "failed"] : undefined;
  },
});
